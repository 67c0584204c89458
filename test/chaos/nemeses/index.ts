// Everything that can be made to go wrong.

import type { Nemesis } from '../testbed.ts'
import { commitDropped, commitReplyDropped, latency, listenSilent, notifyLost, silence } from './network.ts'
import { headLock, idleTransaction, longReader, rowLock, snapshotHeld, writeLock } from './outsiders.ts'
import { kill, poolEmpty, restarts, rollingDeploy, standStill, terminate, twins } from './processes.ts'
import {
  backendGone,
  backendsGone,
  connectionsUsedUp,
  crashInRecovery,
  failover,
  nodeCrash,
  serverCrash,
  statementsCancelled,
  statementTimeout,
} from './server.ts'

/** Those that strike only when they are asked for. */
export const onRequest: readonly Nemesis[] = [restarts]

export const nemeses: readonly Nemesis[] = [
  kill,
  terminate,
  standStill,
  twins,
  rollingDeploy,
  backendGone,
  backendsGone,
  serverCrash,
  nodeCrash,
  crashInRecovery,
  failover,
  connectionsUsedUp,
  statementsCancelled,
  statementTimeout,
  commitDropped,
  commitReplyDropped,
  listenSilent,
  silence,
  latency,
  notifyLost,
  rowLock,
  headLock,
  idleTransaction,
  snapshotHeld,
  poolEmpty,
  writeLock,
  longReader,
]
