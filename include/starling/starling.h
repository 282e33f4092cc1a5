/* starling.h - everything public. */
#ifndef STARLING_STARLING_H
#define STARLING_STARLING_H

#include "starling/agent.h"
#include "starling/algorithm.h"
#include "starling/analysis.h"
#include "starling/compressor.h"
#include "starling/data.h"
#include "starling/device.h"
#include "starling/error.h"
#include "starling/experiment.h"
#include "starling/folder.h"
#include "starling/kernels.h"
#include "starling/learner.h"
#include "starling/links.h"
#include "starling/node.h"
#include "starling/observer.h"
#include "starling/optimal.h"
#include "starling/optimizer.h"
#include "starling/rank.h"
#include "starling/rng.h"
#include "starling/sim.h"
#include "starling/spectrum.h"
#include "starling/task.h"
#include "starling/timeline.h"
#include "starling/topology.h"
#include "starling/types.h"
#include "starling/vec.h"
#include "starling/version.h"

#endif
