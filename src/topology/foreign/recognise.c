/* recognise.c - the format of a graph's file, from its bytes. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/bytes.h"
#include "topology/foreign/recognise.h"

enum { HEAD = 4096 }; /* of an XML file, in which its root element stands */

const char *sl_graph_format_name(sl_graph_format format) {
    static const char *const names[] = {"unknown",
#define NAME(suffix, name) name,
                                        SL_GRAPH_FORMATS_OF(NAME)
#undef NAME
    };
    return names[format];
}

bool sl_graph_format_is_read(sl_graph_format format) {
    return format != SL_GRAPH_UNKNOWN && format <= SL_GRAPH_TABLE;
}

static bool begins(const char *text, const char *with) {
    return strncasecmp(text, with, strlen(with)) == 0;
}

/* Behind blanks, and lines that begin with '#' or '%'. */
static const char *skip_comments(const char *text) {
    for (;;) {
        text += strspn(text, " \t\r\n");
        if (*text != '#' && *text != '%')
            return text;
        text += strcspn(text, "\n");
    }
}

/* ---- JSON and XML ---- */

sl_graph_format sl_graph_recognise_object(const json_t *root) {
    const bool has_nodes = json_is_array(json_object_get(root, "nodes"));
    if (has_nodes && json_is_array(json_object_get(root, "adjacency")))
        return SL_GRAPH_ADJACENCY;
    if (has_nodes && (json_is_array(json_object_get(root, "links")) ||
                      json_is_array(json_object_get(root, "edges"))))
        return SL_GRAPH_NODE_LINK;
    return json_is_object(json_object_get(root, "elements")) ? SL_GRAPH_CYTOSCAPE
                                                             : SL_GRAPH_UNKNOWN;
}

static sl_graph_format recognise_xml(const char *text) {
    char head[HEAD + 1];
    const size_t size = strnlen(text, HEAD);
    memcpy(head, text, size);
    head[size] = '\0';
    if (strcasestr(head, "graphml") != NULL)
        return SL_GRAPH_GRAPHML;
    return strcasestr(head, "<gexf") != NULL ? SL_GRAPH_GEXF : SL_GRAPH_XML;
}

/* ---- lines ---- */

static bool is_number(const char *from, const char *end) {
    char *stop;
    while (from < end && (*from == '"' || isblank((unsigned char)*from)))
        from++;
    strtod(from, &stop);
    while (stop < end && (*stop == '"' || isspace((unsigned char)*stop)))
        stop++;
    return from < end && stop > from && stop >= end;
}

static const char *field_end(const char *at) {
    return at + strcspn(at, " \t,;\r\n");
}

/* The head of an edge list, "source,target,weight", or of a matrix with names, ",a,b,c". */
static bool is_head(const char *line) {
    static const char *const words[] = {"source", "from", "src", "\"source\"", "\"from\""};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (begins(line, words[i]) && strchr(" \t,;", line[strlen(words[i])]) != NULL &&
            line[strlen(words[i])] != '\0')
            return true;
    return *line == ',' || *line == ';';
}

/* Two fields or more, and the last of the first three is a number, or data of networkx's. "rounds:
 * 3" and "rounds = 3" are settings. */
static bool is_row(const char *line) {
    size_t fields = 0;
    bool number = false;
    for (const char *at = line; *at != '\0' && *at != '\n' && fields < 3; fields++) {
        const char *end = field_end(at);
        if (*at == '{')
            return fields == 2;
        if (at + strcspn(at, ":=") < end)
            return false;
        number = is_number(at, end);
        at = end + strspn(end, " \t,;\r");
    }
    return fields >= 2 && number;
}

static sl_graph_format recognise_lines(const char *text) {
    const char *line = skip_comments(text);
    if (begins(line, "*vertices") || begins(line, "*network"))
        return SL_GRAPH_PAJEK;
    if (begins(line, "strict graph") || begins(line, "strict digraph") || begins(line, "digraph"))
        return SL_GRAPH_DOT;
    if (begins(line, "graph") || begins(line, "creator") || begins(line, "version")) {
        for (const char *at = line; (at = strcasestr(at, "graph")) != NULL;) {
            at += strlen("graph");
            if (*skip_comments(at) == '[')
                return SL_GRAPH_GML;
        }
        return begins(line, "graph") && strchr(line, '{') != NULL ? SL_GRAPH_DOT : SL_GRAPH_UNKNOWN;
    }
    return is_head(line) || is_row(line) ? SL_GRAPH_TABLE : SL_GRAPH_UNKNOWN;
}

static const char *skip_mark(const char *bytes) {
    bytes += strncmp(bytes, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    return bytes + strspn(bytes, " \t\r\n");
}

static sl_graph_format recognise_but_objects(const char *bytes, size_t size) {
    if (size >= 6 && memcmp(bytes, "\x93NUMPY", 6) == 0)
        return SL_GRAPH_NPY;
    if (size >= 2 && bytes[0] == '\x80' && bytes[1] > 0 && bytes[1] <= 5)
        return SL_GRAPH_PICKLE;
    if (strlen(bytes) != size)
        return SL_GRAPH_UNKNOWN;
    const char *text = skip_mark(bytes);
    if (begins(text, "%%MatrixMarket"))
        return SL_GRAPH_MATRIX_MARKET;
    if (*text == '<')
        return recognise_xml(text);
    return *text == '{' || *text == '[' ? SL_GRAPH_UNKNOWN : recognise_lines(text);
}

sl_graph_format sl_graph_recognise(const char *bytes, size_t size) {
    const char *text = skip_mark(bytes);
    if (*text != '{')
        return recognise_but_objects(bytes, size);
    json_t *root = json_loads(text, 0, NULL);
    const sl_graph_format format = sl_graph_recognise_object(root);
    json_decref(root);
    return format;
}

int sl_graph_refuse(sl_graph_format format, sl_error *error) {
    if (format == SL_GRAPH_UNKNOWN)
        return 0;
    if (sl_graph_format_is_read(format))
        return sl_fail(error, SL_EINVAL,
                       "is %s; make a topology file of it: starling topology make --from FILE -o "
                       "topology.json",
                       sl_graph_format_name(format));
    return sl_fail(error, SL_EINVAL,
                   "is %s, which is not read; let the program that wrote it write GraphML, GML, "
                   "node-link JSON or an edge list, of which starling topology make --from FILE "
                   "makes a topology file",
                   sl_graph_format_name(format));
}

int sl_graph_take_text(char **out, sl_bytes *bytes, sl_error *error) {
    int result =
        sl_graph_refuse(recognise_but_objects((const char *)bytes->data, bytes->size), error);
    if (result == 0)
        return sl_bytes_take_string(out, bytes, error);
    sl_fail_prefix(error, result, "%s", bytes->name);
    sl_bytes_close(bytes);
    return result;
}

int sl_graph_text_read(char **out, const char *path, size_t bytes_max, sl_error *error) {
    sl_bytes bytes;
    int result = sl_bytes_read(&bytes, path, bytes_max, error);
    return result != 0 ? result : sl_graph_take_text(out, &bytes, error);
}
