/* small_gaps.h - written by small_gaps.py: topology file, 1 - lambda_2, 1 + lambda_n. */
static const struct {
    const char *json;
    double gap_lambda2, gap_lambda_n;
} small_gaps[] = {
    {"{\"nodes\": 2500, \"family\": \"k-ary-tree\", \"arity\": 3}", 0.0001251427188366757,
     0.5622344279713545},
    {"{\"nodes\": 2200, \"family\": \"lollipop\", \"clique\": 60}", 6.797240086024948e-07,
     0.6666673850322136},
    {"{\"nodes\": 2100, \"family\": \"barbell\", \"clique\": 50}", 7.460004597605301e-07,
     0.666667489107119},
    {"{\"nodes\": 2400, \"family\": \"grid\", \"sides\": [40, 60]}", 0.0005550099787509027,
     0.4017041790473235},
    {"{\"nodes\": 900, \"family\": \"path\"}", 4.061561472903777e-06, 0.6666707282281403},
};
