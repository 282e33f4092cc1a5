/* test_tensors.c - files of parameters: written ones come back; what is not as it should be is
 * refused, with file, tensor and both shapes. */
#include "starling/tensors.h"
#include "temporary.h"

enum { NUMBERS = 2 * 3 + 4 + 1, FILE_MAX = 4096 };

static const sl_tensor model[] = {{"a", {2, 3}, 2}, {"b.c", {4}, 1}, {"scalar", {0}, 0}};
enum { TENSORS = sizeof model / sizeof *model };
static const char *path;
static sl_error error;

static void setup(void) {
    make_base();
    path = at("model");
}

FIXTURES(setup, remove_base);

static void write_file(const void *head, size_t head_bytes, const void *body, size_t bytes) {
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    fwrite(head, 1, head_bytes, file);
    if (bytes)
        fwrite(body, 1, bytes, file);
    ck_assert_int_eq(fclose(file), 0);
}

static int load(float x[NUMBERS]) {
    int result = sl_tensors_load(x, model, TENSORS, path, &error);
    unlink(path);
    return result;
}

#define A "\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}"
#define B "\"b.c\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[24,40]}"
#define S "\"scalar\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[40,44]}"

static int load_header(const char *text, size_t claimed, size_t data_bytes) {
    static const float zeros[FILE_MAX];
    float x[NUMBERS];
    uint8_t head[FILE_MAX];
    for (int i = 0; i < 8; i++)
        head[i] = (uint8_t)((uint64_t)claimed >> 8 * i);
    memcpy(head + 8, text, strlen(text));
    write_file(head, 8 + strlen(text), zeros, data_bytes);
    return load(x);
}

static void refuse(const char *text, const char *why) {
    EXPECT_ERROR(load_header(text, strlen(text), 44), SL_EFILE, why);
    ck_assert_msg(strncmp(error.text, path, strlen(path)) == 0, "%s", error.text);
}

START_TEST(what_does_not_fit_the_model_is_named) {
    refuse("{" A "," S "}", "has no tensor \"b.c\"; the model's has shape [4]");
    refuse("{" A "," B "," S ",\"d\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[44,44]}}",
           "tensor \"d\" of shape [0]: the model has no such");
    refuse("{\"a\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[0,24]}," B "," S "}",
           "tensor \"a\": dtype is \"BF16\"; it must be \"F32\"");
    refuse("{\"a\":7," B "," S "}", "has no tensor \"a\"");
}

START_TEST(places_that_overlap_or_leave_holes_are_refused) {
    static const char *const places[] = {
        "[0,20]", "[24,0]", "[-24,0]", "[0,24,48]", "[0.0,24]", "7", "[0,9223372036854775807]"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        refuse(printed("{\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":%s}," B "," S
                       "}",
                       places[i]),
               "tensor \"a\": data_offsets are");
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[16,40]}," B "," S "}",
           "do not fill the 44 bytes behind the header");
    refuse("{\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[4096,4120]}," B "," S "}",
           "do not fill the 44 bytes behind the header");
    EXPECT_ERROR(load_header("{" A "," B "," S "}", strlen("{" A "," B "," S "}"), 40), SL_EFILE,
                 "is the file cut off?");
}

START_TEST(what_is_no_header_is_refused) {
    refuse("[]", "its header is no JSON object");
    refuse("{\"a\":", path);
    refuse("{" A "," A "," B "," S "}", "duplicate");
    ck_assert_int_eq(load_header("{}", (size_t)1 << 60, 44), SL_EFILE);
    EXPECT_ERROR(load_header("{}", 500, 44), SL_EFILE,
                 "neither a safetensors file nor a .npy file");
    write_file("short", 5, NULL, 0);
    ck_assert_int_eq(load((float[NUMBERS]){0}), SL_EFILE);
    ck_assert_int_eq(sl_tensors_load(NULL, model, TENSORS, ".", &error), SL_EFILE);
    ck_assert_int_eq(sl_tensors_load(NULL, model, TENSORS, "nowhere", &error), SL_EFILE);
}

static void refuse_npy(const char *text, const char *why) {
    static const float zeros[NUMBERS];
    uint8_t head[FILE_MAX] = "\x93NUMPY\x01";
    head[8] = (uint8_t)strlen(text);
    memcpy(head + 10, text, strlen(text));
    write_file(head, 10 + strlen(text), zeros, sizeof zeros);
    EXPECT_ERROR(load((float[NUMBERS]){0}), SL_EFILE, why);
}

START_TEST(an_npy_file_of_anything_else_is_refused) {
    refuse_npy("{'descr': '<f8', 'fortran_order': False, 'shape': (11,), }", "<f8");
    refuse_npy("{'descr': '>f4', 'fortran_order': False, 'shape': (11,), }", ">f4");
    refuse_npy("{'descr': '<c8', 'fortran_order': False, 'shape': (11,), }", "<c8");
    refuse_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (11, 1), }", "but 2 of <f4");
    refuse_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (), }", "but 0 of <f4");
    refuse_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (11, 0), }", "holds no numbers");
    refuse_npy("{'descr': '<f4', 'shape': (99999999999999999999, 2, 3), }", "beyond any memory");
    refuse_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (12,), }",
               "the file has shape [12], the model [11]");
    refuse_npy("", "its numbers are of several fields");
    write_file("\x93NUMPY\x01\x00\xFF", 9, NULL, 0);
    EXPECT_ERROR(load((float[NUMBERS]){0}), SL_EFILE, "is it cut off?");
}

/* Both orders of the same array: [[0, 1, 2], [3, 4, 5]], its index in C order as number. */
START_TEST(an_array_in_memory_is_read_in_c_order) {
    static const struct {
        const char *text;
        uint8_t numbers[6];
    } arrays[] = {
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }", {0, 1, 2, 3, 4, 5}},
        {"{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", {0, 3, 1, 4, 2, 5}}};
    for (size_t i = 0; i < 2; i++) {
        uint8_t file[128] = "\x93NUMPY\x01";
        const size_t length = strlen(arrays[i].text);
        file[8] = (uint8_t)length;
        memcpy(file + 10, arrays[i].text, length);
        memcpy(file + 10 + length, arrays[i].numbers, 6);
        sl_npy a;
        EXPECT_WELL(sl_npy_parse(&a, file, 16 + length, &error));
        for (size_t k = 0; k < 6; k++)
            ck_assert_double_eq(sl_npy_number(&a, k), (double)k);
        ck_assert_int_eq(sl_npy_parse(&a, file, 15 + length, &error), SL_EFILE);
    }
}
