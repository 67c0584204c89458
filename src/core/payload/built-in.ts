// Recognises the class of an object by its internal slots and not by `instanceof`: a value may come from another realm (a
// test runner, a vm context), and a class may claim any name in `Symbol.toStringTag`.

const probes = {
  Date: (Date.prototype as { getTime: (this: void) => number }).getTime,
  Map: getter(Map.prototype, 'size'),
  Set: getter(Set.prototype, 'size'),
  Uint8Array: getter(Object.getPrototypeOf(Uint8Array.prototype) as object, 'byteLength'),
} as const

export type BuiltIn = keyof typeof probes

/** The built-in that an object is, subclasses and other realms included; undefined for any other object. */
export function builtIn(value: object): BuiltIn | undefined {
  const tag = Object.prototype.toString.call(value).slice(8, -1)
  if (!Object.hasOwn(probes, tag)) return undefined
  try {
    // Throws unless the object really has the slot that the tag promises.
    Reflect.apply(probes[tag as BuiltIn], value, [])
    return tag as BuiltIn
  } catch {
    return undefined
  }
}

/** Whether an object is a plain one of another realm. */
export function isForeignPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value) as object
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, 'isPrototypeOf')
}

/** The name of an object's class, for a message; never throws, even if the object's properties do. */
export function classNameOf(value: object): string {
  try {
    const name: unknown = (value as { constructor?: { name?: unknown } }).constructor?.name
    return typeof name === 'string' && name !== '' ? name.slice(0, 80) : '(anonymous)'
  } catch {
    return '(unknown)'
  }
}

function getter(prototype: object, name: string): () => unknown {
  const descriptor = Object.getOwnPropertyDescriptor(prototype, name) as { get: (this: void) => unknown }
  return descriptor.get
}
