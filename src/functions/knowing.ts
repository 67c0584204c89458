// Methods that are taken out of their object, `const { step } = ctx`, do not know it any more. They say so, instead of failing at
// whatever they look for first.

import { HoldfastError } from '../core/error.ts'

type Method = (this: unknown, ...given: readonly unknown[]) => unknown

/** Lets these methods refuse to be called without the object that they belong to. */
export function knowing<Target extends object>(
  prototype: Target,
  names: readonly (keyof Target & string)[],
  isOwn: (called: unknown) => boolean,
): void {
  for (const name of names) {
    const method = prototype[name] as Method
    const value: Method = function (...given) {
      if (isOwn(this)) return Reflect.apply(method, this, given)
      throw new HoldfastError(
        'INVALID_OPTION',
        `${name}() was called without its context. Call it as ctx.${name}(…): taken out of ctx, as in const { ${name} } = ctx, it ` +
          'does not know its run. Hand on ctx itself.',
      )
    }
    Object.defineProperty(prototype, name, { value, writable: true, configurable: true, enumerable: false })
  }
}
