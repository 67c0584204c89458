// The meetings that are tried in every order: what each covers, and in how many orders it comes at least.

import {
  bothSend,
  broadcastAndSubscribe,
  broadcastAndUnsubscribe,
  endAndSend,
  endAndWatch,
  endBoth,
  parentAndChild,
  queueAndCancel,
  queueAndTwo,
  runSendsAndEnd,
  runSendsAndPark,
  sameKeys,
  sendAndPark,
  sendParkAndClaim,
  twoBroadcasts,
} from './meeting-parties.ts'
import { kept, queue, toAll, type Meeting } from './meeting-world.ts'

export interface Planned {
  readonly name: string
  readonly meeting: Meeting
  /** So many orders there are at least; if there are fewer, something is not tried any more. */
  readonly atLeast: number
  /** Three parties come in millions of orders: those that are the same are tried once. */
  readonly isMerged?: true
}

export const meetings: readonly Planned[] = [
  { name: 'WC-C1 PEERS 3.1 (a) send and park', meeting: sendAndPark, atLeast: 9 },
  {
    name: 'WC-C1 no_lost_wakeup (b) a child ends and its parent begins to watch it',
    meeting: endAndWatch(false, 'commit'),
    atLeast: 42,
  },
  {
    name: 'WC-C1 no_lost_wakeup (b) the same with the locks the other way round',
    meeting: endAndWatch(true, 'commit'),
    atLeast: 23,
  },
  {
    name: 'WC-C1 no_lost_wakeup (b) a child is cancelled and its parent begins to watch it',
    meeting: endAndWatch(true, 'cancel'),
    atLeast: 96,
  },
  {
    name: 'WC-C1 broadcast_snapshot (c) broadcast and subscribe',
    meeting: broadcastAndSubscribe(toAll),
    atLeast: 284,
  },
  {
    name: 'WC-C1 broadcast_snapshot (c) broadcast that is retained and subscribe',
    meeting: broadcastAndSubscribe(kept),
    atLeast: 284,
  },
  { name: 'WC-W2 WC-E3 (c) broadcast to a queue and subscribe', meeting: broadcastAndSubscribe(queue), atLeast: 284 },
  {
    name: 'WC-W5 broadcast_snapshot (d) broadcast and unsubscribe',
    meeting: broadcastAndUnsubscribe(toAll),
    atLeast: 34,
  },
  {
    name: 'WC-W5 WC-W2 (d) broadcast to a queue and unsubscribe',
    meeting: broadcastAndUnsubscribe(queue),
    atLeast: 35,
  },
  {
    name: 'WC-W2 signal_consumed_at_most_once (e) broadcast to a queue and two subscribers',
    meeting: queueAndTwo,
    atLeast: 650,
    isMerged: true,
  },
  { name: 'signal_not_lost (f) end and send, unread is discarded', meeting: endAndSend('discard'), atLeast: 132 },
  {
    name: 'signal_not_lost (f) end and send, unread is a dead letter',
    meeting: endAndSend('dead-letter'),
    atLeast: 132,
  },
  {
    name: 'signal_not_lost (f) end and send, unread goes to its topic',
    meeting: endAndSend('broadcast'),
    atLeast: 331,
  },
  { name: 'signal_fifo (g) two broadcasts and one subscriber', meeting: twoBroadcasts(toAll, false), atLeast: 84 },
  {
    name: 'WC-W2 signal_fifo (g) two broadcasts to a queue and one subscriber',
    meeting: twoBroadcasts(queue, false),
    atLeast: 104,
  },
  {
    name: 'WC-E3 signal_fifo (g) two broadcasts that are retained and one that subscribes',
    meeting: twoBroadcasts(kept, true),
    atLeast: 1_186,
    isMerged: true,
  },
  {
    name: 'WC-W2 WC-E3 signal_fifo (g) two broadcasts to a queue and one that subscribes',
    meeting: twoBroadcasts(queue, true),
    atLeast: 1_186,
    isMerged: true,
  },
  { name: 'close_sees_signals (h) a parent ends while its child ends', meeting: parentAndChild(true), atLeast: 4_810 },
  { name: '(h) a parent ends while a child that it does not await ends', meeting: parentAndChild(false), atLeast: 133 },
  { name: 'WC-C1 PEERS 3.1 (i) send, park and claim', meeting: sendParkAndClaim, atLeast: 253, isMerged: true },
  {
    name: 'WC-W2 signal_not_lost (j) broadcast to a queue and a subscriber that is cancelled',
    meeting: queueAndCancel,
    atLeast: 277,
    isMerged: true,
  },
  { name: '(k) two parents start children of the same keys', meeting: sameKeys, atLeast: 15, isMerged: true },
  { name: 'WC-C1 no_lost_wakeup (l) a run sends to one that parks', meeting: runSendsAndPark, atLeast: 42 },
  { name: 'signal_not_lost (l) a run sends to one that ends', meeting: runSendsAndEnd, atLeast: 42 },
  { name: 'no_lost_wakeup (l) two that park send to each other', meeting: bothSend, atLeast: 6, isMerged: true },
  { name: 'no_lost_wakeup two that wait for each other end at once', meeting: endBoth, atLeast: 150 },
]

export function meetingNamed(part: string): Meeting {
  const found = meetings.find(({ name }) => name.includes(part))
  if (found === undefined) throw new TypeError(`There is no meeting ${part}`)
  return found.meeting
}
