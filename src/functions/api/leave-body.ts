// In a test that watches bodies, every call of a context leaves the body: work of the engine on its behalf is not code of the
// body.

import type { Ports } from '../../core/runtime/ports.ts'

/** No method of a context takes more than three. */
type Method = (this: unknown, first?: unknown, second?: unknown, third?: unknown) => unknown

/**
 * Lets these methods leave the body for as long as they take. They become the object's own, so that a call is still found in the
 * stack by the method that it names (`functions/replay/call-site.ts`).
 */
export function leaveBodyDuring<Target extends object>(
  target: Target,
  names: readonly (keyof Target & string)[],
  { bodies }: Pick<Ports, 'bodies'>,
): Target {
  if (bodies === undefined) return target
  for (const name of names) {
    const method = target[name] as Method
    const value: Method = function (first, second, third) {
      return bodies.leave(() => method.call(this, first, second, third))
    }
    Object.defineProperty(target, name, { value, writable: true, configurable: true, enumerable: false })
  }
  return target
}
