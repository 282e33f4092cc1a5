/* board.h - a run as one document: what its folder says so far, and what its agents say now.
 *
 * The run folder is the model (docs/outputs.md). A look reads what its files have got since the one
 * before, and asks the agents that run in it on this machine, and others at their ports. The
 * document is JSON:
 *
 *   "version"    grows with each look that changed something
 *   "run"        {"name", "algorithm", "driver", "nodes", "rounds", "started", "ended", "outcome",
 *                "why", "rank", "period", "rho", "notes"}: rank: of a lone agent, whose files alone
 *                are there, or null; rounds: 0 until it is known; period: rounds after which the
 *                topology repeats, 0: never; rho: by which a round of averaging shrinks the
 *                consensus distance, or null; notes: what could not be read, in sentences; outcome:
 *                as in run.json, or "killed": it says "running", and its process is gone
 *   "nodes"      [{"rank", "state", "round", "still_s", "waits_for", "words", "loss", "accuracy",
 *                "sent", "seconds"}]: by rank. state: what an agent does, or is known to do
 *                by its neighbours ("is connected"); "does not answer"; "runs" of a simulation;
 *                "lost", "unknown", or how it has ended; waits_for: ranks;
 *                words: the same in words; sent: bytes; seconds: {"compute", "encode", "exchange",
 *                "wait", "down"} as in "strip", sums of the run
 *   "edges"      [{"from", "to", "weight", "slots"}]: from's model in to's average; slots: in which
 *                rounds of a period, from 0; null: in all. By to, then from
 *   "positions"  [[x, y], ...] by rank, within the unit square, y downwards
 *   "links"      a row for each of "edges", in their order: {"from", "to", "lag", "mb_s",
 *                "round_trip_s", "wait_share", "protection", "reconnects"}, each null if unknown:
 *                lag: rounds that `from` is behind `to`; mb_s: 10^6 bytes a second that come;
 *                wait_share: of the time, `to` waits for it: both of the last second or more
 *   "curves"     columns by recorded round: {"round", "loss", "accuracy", "averaged", "distance",
 *                "predicted", "apart", "bytes"}: mean loss of batches and mean held-out accuracy of
 *                the nodes' models; that of the averaged model; consensus distance; the same as
 *                averaging alone would leave of the point before: times rho for each round; mean
 *                neighbour distance; bytes that a node has sent
 *   "strip"      [{"rank", "until", "round", "compute", "encode", "exchange", "wait", "down"}]:
 *                columns, by rising time: seconds since the run began, and what the node did since
 *                the time before, or since the run began; encode: and combining; exchange: what is
 *                moved while nothing else is done, but for waiting. down: [[from, until], ...] in
 *                seconds, until null: it still is
 *   "events"     [{"event", "node", "nodes", "round", "time", "text"}], by time, which is seconds
 *                since the run began. nodes: so many say the same; node: one, null: all
 *
 * Of more than SL_BOARD_NODES_MAX nodes, or SL_BOARD_EDGES_MAX edges, "nodes", "edges",
 * "positions", "links" and "strip" are empty. */
#ifndef STARLING_BOARD_H
#define STARLING_BOARD_H

#include <stdbool.h>
#include <stdint.h>

#include "starling/api.h"
#include "starling/asking.h"
#include "starling/error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SL_BOARD_NODES_MAX = 500, SL_BOARD_EDGES_MAX = 8192 };

typedef struct sl_board sl_board;

/* Reads what is there. SL_EFILE: no such folder; no run in it; its config.json is not whole, or of
 * a version that this one does not read. */
SL_API int sl_board_open(sl_board **out, const char *folder, sl_error *error);
/* Of agents that may have no socket in the folder; borrowed for the board's life. */
SL_API void sl_board_ask_at(sl_board *board, const sl_asked_port *ports, size_t count);
/* Looks again; asks agents for at most patience_s, none with 0. What cannot be read becomes one of
 * the document's notes. SL_ENOMEM. */
SL_API int sl_board_look(sl_board *board, double patience_s, sl_error *error);
SL_API uint64_t sl_board_version(const sl_board *board);
/* Has the run ended, as far as its folder says? */
SL_API bool sl_board_is_over(const sl_board *board);
/* "version", and those other members of the document that have changed after version `since`; 0:
 * all. malloc'ed; NULL: out of memory. */
SL_API char *sl_board_text(const sl_board *board, uint64_t since);
/* What a run is known for as a whole, as Prometheus reads it: what no agent knows alone. The same.
 */
SL_API char *sl_board_metrics(const sl_board *board);
SL_API void sl_board_close(sl_board **board);

/* Does nobody hold the lock of an open run.json, or run-RANK.json, which host `host` has written
 * and which says that its run goes on? Then its process is gone without a word. */
SL_API bool sl_run_is_gone(int fd, const char *host);

#ifdef __cplusplus
}
#endif
#endif
