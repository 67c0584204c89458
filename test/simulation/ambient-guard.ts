// While a simulation runs, nobody may ask the machine for time or chance: the code that does gets an exception, and the seed fails.

export interface AmbientGuard {
  /** What was asked for all the same. */
  readonly asked: readonly string[]
  lift(): void
}

interface Place {
  readonly holder: object
  readonly key: string
}

const places: readonly Place[] = [
  { holder: globalThis, key: 'setTimeout' },
  { holder: globalThis, key: 'setInterval' },
  { holder: globalThis, key: 'setImmediate' },
  { holder: globalThis, key: 'queueMicrotask' },
  { holder: globalThis, key: 'fetch' },
  { holder: Math, key: 'random' },
  { holder: performance, key: 'now' },
  { holder: globalThis.crypto, key: 'randomUUID' },
  { holder: globalThis.crypto, key: 'getRandomValues' },
  { holder: AbortSignal, key: 'timeout' },
]

export function forbidAmbient(): AmbientGuard {
  const asked: string[] = []
  const refuse = (what: string): never => {
    asked.push(what)
    throw new Error(`${what} was used in a simulation.`)
  }
  const before = places.map(({ holder, key }) => Object.getOwnPropertyDescriptor(holder, key))
  for (const { holder, key } of places) {
    Object.defineProperty(holder, key, { value: () => refuse(key), configurable: true, writable: true })
  }
  const RealDate = Date
  globalThis.Date = new Proxy(RealDate, {
    apply: () => refuse('Date'),
    construct: (target, given: number[]) => (given[0] === undefined ? refuse('new Date()') : new target(given[0])),
    get: (target, key) => (key === 'now' ? () => refuse('Date.now') : (Reflect.get(target, key) as unknown)),
  })
  return {
    asked,
    lift() {
      globalThis.Date = RealDate
      places.forEach(({ holder, key }, index) => {
        const descriptor = before[index]
        if (descriptor === undefined) Reflect.deleteProperty(holder, key)
        else Object.defineProperty(holder, key, descriptor)
      })
    },
  }
}
