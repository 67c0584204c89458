// A topic as a user declares it: `topic('price-changed', { … })`. Senders and waiters share the value.

import { HoldfastError } from '../errors/error.ts'
import { toMs, type Duration } from './duration.ts'
import { isRunId } from '../model/run-id.ts'
import type { MessagePolicy } from '../model/topic.ts'
import { isPrintable, quotedText } from '../text/printable.ts'
import { isSchema, validate, type Schema } from './schema.ts'
import { checkOptions, didYouMean, shown } from '../text/suggest.ts'
import { completionPrefix } from '../completion/completion-token.ts'
import type { Delivery, TopicRules } from '../model/topic.ts'

export interface TopicOptions<Payload> {
  /** Checks payloads when they are sent, and when they are received. @default any payload */
  readonly schema?: Schema<Payload>
  /** To every run that waits on it, or to the one that has waited longest. @default 'all' */
  readonly delivery?: Delivery
  /** For how long runs that subscribe later still get earlier broadcasts; only for `all` delivery. @default 0 */
  readonly retain?: Duration
  /**
   * The policy for a message that its run has not read when it ends.
   * @default 'broadcast' with `delivery: 'one'`, so that another run gets it; otherwise 'discard'
   */
  readonly onUnread?: 'discard' | 'broadcast' | 'dead-letter'
}

export interface Topic<Payload = unknown> {
  readonly name: string
  readonly rules: TopicRules
  /** The policy for unread messages. */
  readonly policy: MessagePolicy | null
  /** Turns a payload into the value that receivers see, or throws. */
  readonly validate: (payload: unknown) => unknown
  /** Only for the compiler; there is no such value. */
  readonly types?: { readonly payload: Payload }
}

const deliveries: readonly Delivery[] = ['all', 'one']
const policies = ['discard', 'broadcast', 'dead-letter'] as const

export const longestName = 200

/**
 * Declares a topic: a name to which a client may send without knowing which runs wait.
 *
 * @example
 * const priceChanged = topic('price-changed', { schema: z.object({ price: z.number() }), retain: '1h' })
 * await holdfast.broadcast(priceChanged, { price: 12 })
 * // in a workflow: const { price } = await ctx.receive(priceChanged)
 */
export function topic<Payload = unknown>(name: string, options: TopicOptions<Payload> = {}): Topic<Payload> {
  checkSignalName(name, 'A topic')
  const where = `Topic ${quotedText(name)}`
  checkOptions(options, ['schema', 'delivery', 'retain', 'onUnread'], where)
  const { schema, delivery = 'all', retain = 0 } = options
  if (schema !== undefined && !isSchema(schema)) {
    throw new HoldfastError('INVALID_OPTION', `${where}: schema must be a Standard Schema, such as one of zod.`)
  }
  checkOneOf(delivery, deliveries, `${where}: delivery`)
  const onUnread = options.onUnread ?? (delivery === 'one' ? 'broadcast' : 'discard')
  checkOneOf(onUnread, policies, `${where}: onUnread`)
  const retainMs = toMs(retain, `${where}: retain`)
  return {
    name,
    rules: { name, delivery, retainMs },
    policy: policyOf(onUnread, delivery, retainMs),
    validate: (payload) => (schema === undefined ? payload : validate(schema, payload, `The payload for ${where}`)),
  }
}

/** Throws INVALID_NAME unless it is one that a signal or topic can have. */
export function checkSignalName(name: unknown, what: string): string {
  const isText = typeof name === 'string' && name !== '' && name.length <= longestName && isPrintable(name)
  if (!isText) {
    throw new HoldfastError(
      'INVALID_NAME',
      `${what} needs a name: printable text of 1 to ${longestName} characters. Got ${shown(name)}.`,
    )
  }
  // Ends of runs and completions of `ctx.token()` come into the same mailbox, under such names.
  if (!isRunId(name) && !name.startsWith(completionPrefix)) return name
  throw new HoldfastError(
    'INVALID_NAME',
    `${what} cannot be called ${shown(name)}: ids of runs, and names that begin with "${completionPrefix}", have a meaning of ` +
      'their own. Choose another name.',
  )
}

export function isTopic(value: unknown): value is Topic {
  return typeof value === 'object' && value !== null && typeof (value as Partial<Topic>).rules === 'object'
}

function policyOf(onUnread: (typeof policies)[number], delivery: Delivery, retainMs: number): MessagePolicy | null {
  if (onUnread === 'discard') return null
  return onUnread === 'broadcast' ? { onUnread, delivery, retainMs } : { onUnread }
}

function checkOneOf(value: string, known: readonly string[], what: string): void {
  if (known.includes(value)) return
  throw new HoldfastError(
    'INVALID_OPTION',
    `${what} is one of ${known.join(', ')}. Got ${shown(value)}.${didYouMean(value, known)}`,
  )
}
