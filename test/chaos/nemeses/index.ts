// Everything that can be made to go wrong.

import type { Nemesis } from '../field.ts'
import { commitDropped, commitReplyDropped, latency, listenSilent, notifyLost, silence } from './network.ts'
import { idleTransaction, longReader, rowLock, writeLock } from './outsiders.ts'
import { kill, rollingDeploy, standStill, terminate, twins } from './processes.ts'
import {
  backendGone,
  backendsGone,
  connectionsUsedUp,
  crashInRecovery,
  serverCrash,
  statementsCancelled,
  statementTimeout,
} from './server.ts'

export const nemeses: readonly Nemesis[] = [
  kill,
  terminate,
  standStill,
  twins,
  rollingDeploy,
  backendGone,
  backendsGone,
  serverCrash,
  crashInRecovery,
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
  idleTransaction,
  writeLock,
  longReader,
]
