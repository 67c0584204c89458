// What every store must do, as plain data: run each case on a store of its own, under any test runner. A store that passes
// may take the place of any other, and no workflow will notice.

import type { ContractCase } from './contract-case.ts'
import { beating } from './beating.ts'
import { boundedLoading } from './bounded-loading.ts'
import { broadcasting } from './broadcasting.ts'
import { cancelling } from './cancelling.ts'
import { chores } from './chores.ts'
import { children } from './children.ts'
import { claiming } from './claiming.ts'
import { committing } from './committing.ts'
import { continuing } from './continuing.ts'
import { deadLetters } from './dead-letters.ts'
import { endPages } from './end-pages.ts'
import { ending } from './ending.ts'
import { fairClaims } from './fair-claims.ts'
import { feed } from './feed.ts'
import { fencing } from './fencing.ts'
import { finding } from './finding.ts'
import { hints } from './hints.ts'
import { keys } from './keys.ts'
import { leftovers } from './leftovers.ts'
import { lifecycle } from './lifecycle.ts'
import { mailPaging } from './mail-paging.ts'
import { mailbox } from './mailbox.ts'
import { parking } from './parking.ts'
import { parting } from './parting.ts'
import { pausing } from './pausing.ts'
import { payloadKeys } from './payload-keys.ts'
import { queueing } from './queueing.ts'
import { quotas } from './quotas.ts'
import { reading } from './reading.ts'
import { releasing } from './releasing.ts'
import { removing } from './removing.ts'
import { repeating } from './repeating.ts'
import { rescuing } from './rescuing.ts'
import { reviving } from './reviving.ts'
import { scheduling } from './scheduling.ts'
import { sessions } from './sessions.ts'
import { starting } from './starting.ts'
import { startingMail } from './starting-mail.ts'
import { steering } from './steering.ts'
import { suspects } from './suspects.ts'
import { timeouts } from './timeouts.ts'
import { topics } from './topics.ts'
import { transactions } from './transactions.ts'
import { undoing } from './undoing.ts'
import { waking } from './waking.ts'
import { wantingMail } from './wanting.ts'
import { watching } from './watching.ts'

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
  ...lifecycle,
  ...starting,
  ...keys,
  ...claiming,
  ...fairClaims,
  ...payloadKeys,
  ...scheduling,
  ...committing,
  ...fencing,
  ...repeating,
  ...ending,
  ...parking,
  ...mailbox,
  ...startingMail,
  ...mailPaging,
  ...watching,
  ...children,
  ...parting,
  ...broadcasting,
  ...queueing,
  ...topics,
  ...leftovers,
  ...deadLetters,
  ...chores,
  ...endPages,
  ...waking,
  ...wantingMail,
  ...releasing,
  ...continuing,
  ...steering,
  ...cancelling,
  ...pausing,
  ...reviving,
  ...removing,
  ...sessions,
  ...beating,
  ...rescuing,
  ...suspects,
  ...timeouts,
  ...undoing,
  ...reading,
  ...boundedLoading,
  ...finding,
  ...feed,
  ...hints,
  ...transactions,
  ...quotas,
]
