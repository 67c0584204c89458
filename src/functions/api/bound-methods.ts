// Methods that are taken out of their object, `const { step } = ctx`, lose their context. A call of such a method throws at
// once and says so, instead of failing later at the first property it reads. It throws because without its context a call has
// no promise to reject.

import { HoldfastError } from '../../core/errors/error.ts'

/** No method of a context takes more than three. */
type Method = (this: unknown, first?: unknown, second?: unknown, third?: unknown) => unknown

/** Lets these methods refuse to be called without the object that they belong to. */
export function bindMethods<Target extends object>(
  prototype: Target,
  names: readonly (keyof Target & string)[],
  isOwn: (called: unknown) => boolean,
): void {
  for (const name of names) {
    const method = prototype[name] as Method
    // Three parameters instead of a rest parameter: this function is called with every step, and a rest parameter makes an
    // array.
    const value: Method = function (first, second, third) {
      if (isOwn(this)) return method.call(this, first, second, third)
      throw new HoldfastError(
        'INVALID_OPTION',
        `${name}() was called without its context. Call it as ctx.${name}(…): taken out of ctx, as in const { ${name} } = ctx, it ` +
          'does not know its run. Hand on ctx itself.',
      )
    }
    Object.defineProperty(prototype, name, { value, writable: true, configurable: true, enumerable: false })
  }
}
