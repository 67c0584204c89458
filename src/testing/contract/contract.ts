// The contract of stores, as plain data: run each case on its own store, under any test runner. A store that passes can
// replace any other without a difference for workflows.

import type { ContractCase } from './contract-case.ts'
import { heartbeatCases } from './claims/heartbeat.ts'
import { boundedLoadCases } from './commits/bounded-load.ts'
import { broadcastCases } from './messages/broadcast.ts'
import { cancelCases } from './control/cancel.ts'
import { choreCases } from './commits/chores.ts'
import { childCases } from './runs/children.ts'
import { claimCases } from './claims/claim.ts'
import { commitCases } from './commits/commit.ts'
import { continueAsNewCases } from './runs/continue-as-new.ts'
import { decidedInTransactionCases } from './decided/decided-in-transactions.ts'
import { decidedStartCases } from './decided/decided-starts.ts'
import { deadLetterCases } from './messages/dead-letters.ts'
import { effectCases } from './decided/effects.ts'
import { endPageCases } from './commits/end-pages.ts'
import { endCases } from './runs/end.ts'
import { fairClaimCases } from './claims/fair-claims.ts'
import { feedCases } from './commits/feed.ts'
import { fenceCases } from './claims/fence.ts'
import { findCases } from './commits/find.ts'
import { hintCases } from './claims/hints.ts'
import { keyCases } from './runs/keys.ts'
import { leasedChildCases } from './decided/leased-children.ts'
import { unreadMessageCases } from './messages/unread-messages.ts'
import { namedClaimCases } from './claims/named-claims.ts'
import { openCloseCases } from './runs/open-close.ts'
import { mailboxPageCases } from './messages/mailbox-pages.ts'
import { mailboxCases } from './messages/mailbox.ts'
import { parkCases } from './commits/park.ts'
import { parentEndCases } from './runs/parent-end.ts'
import { pauseCases } from './control/pause.ts'
import { payloadKeyCases } from './claims/payload-keys.ts'
import { projectionCases } from './commits/projections.ts'
import { queueCases } from './messages/queue.ts'
import { heldBackCases } from './messages/held-back.ts'
import { sendCases } from './messages/send.ts'
import { quotaCases } from './messages/quotas.ts'
import { readCases } from './commits/read.ts'
import { releaseCases } from './claims/release.ts'
import { removeCases } from './runs/remove.ts'
import { repeatCases } from './commits/repeat.ts'
import { rescueCases } from './claims/rescue.ts'
import { retryCases } from './runs/retry.ts'
import { scheduleCases } from './runs/schedule.ts'
import { sessionCases } from './claims/sessions.ts'
import { settleCases } from './decided/settle.ts'
import { startCases } from './runs/start.ts'
import { startWithMessagesCases } from './runs/start-with-messages.ts'
import { controlCases } from './control/control.ts'
import { suspectCases } from './claims/suspects.ts'
import { timeoutCases } from './claims/timeouts.ts'
import { topicCases } from './messages/topics.ts'
import { unusedTopicCases } from './messages/unused-topics.ts'
import { userTransactionCases } from './runs/user-transactions.ts'
import { undoCases } from './runs/undo.ts'
import { unheldCases } from './decided/unheld-cases.ts'
import { wakeCases } from './commits/wake.ts'
import { wakeNameCases } from './messages/wake-names.ts'
import { watchCases } from './commits/watch.ts'

/**
 * The contract of a store.
 *
 * @example
 * for (const { name, run } of storeContract) {
 *   test(name, async () => {
 *     const clock = createVirtualClock()
 *     await run(createContractBench({ store: await openMyStore({ clock }), clock }))
 *   })
 * }
 */
export const storeContract: readonly ContractCase[] = [
  ...openCloseCases,
  ...startCases,
  ...keyCases,
  ...claimCases,
  ...fairClaimCases,
  ...namedClaimCases,
  ...payloadKeyCases,
  ...scheduleCases,
  ...commitCases,
  ...fenceCases,
  ...repeatCases,
  ...endCases,
  ...parkCases,
  ...unheldCases,
  ...decidedStartCases,
  ...mailboxCases,
  ...startWithMessagesCases,
  ...mailboxPageCases,
  ...watchCases,
  ...childCases,
  ...leasedChildCases,
  ...settleCases,
  ...effectCases,
  ...parentEndCases,
  ...broadcastCases,
  ...queueCases,
  ...topicCases,
  ...unusedTopicCases,
  ...unreadMessageCases,
  ...deadLetterCases,
  ...choreCases,
  ...endPageCases,
  ...wakeCases,
  ...wakeNameCases,
  ...releaseCases,
  ...continueAsNewCases,
  ...controlCases,
  ...cancelCases,
  ...pauseCases,
  ...retryCases,
  ...removeCases,
  ...sessionCases,
  ...heartbeatCases,
  ...rescueCases,
  ...suspectCases,
  ...timeoutCases,
  ...undoCases,
  ...readCases,
  ...boundedLoadCases,
  ...findCases,
  ...feedCases,
  ...projectionCases,
  ...hintCases,
  ...userTransactionCases,
  ...decidedInTransactionCases,
  ...quotaCases,
  ...sendCases,
  ...heldBackCases,
]
