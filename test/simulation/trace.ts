// What happened in a simulation, as one number: two runs of a seed are the same if their hashes are. What crosses the store
// port is copied and hashed in one walk, so that nobody shares an object with the store. When asked to, it also keeps a
// story that people can read.

const longestHashed = 48

export class Trace {
  private h1 = 0x811c9dc5 | 0
  private h2 = 0x1b873593 | 0
  events = 0
  readonly lines: string[] | null

  constructor(keepsLines: boolean) {
    this.lines = keepsLines ? [] : null
  }

  get hash(): string {
    return (this.h1 >>> 0).toString(16).padStart(8, '0') + (this.h2 >>> 0).toString(16).padStart(8, '0')
  }

  number(value: number): void {
    const whole = value | 0
    const rest = ((value - whole) * 4_294_967_296) | 0
    this.h1 = Math.imul(this.h1 ^ whole, 0x01000193)
    this.h2 = Math.imul(this.h2 ^ (whole + rest), 0x85ebca6b) ^ (this.h1 >>> 15)
  }

  text(value: string): void {
    let { h1 } = this
    // Texts differ at their ends: ids and counts grow there.
    const from = Math.max(0, value.length - longestHashed)
    for (let index = from; index < value.length; index += 1) h1 = Math.imul(h1 ^ value.charCodeAt(index), 0x01000193)
    this.h1 = h1
    this.h2 = Math.imul(this.h2 ^ h1 ^ value.length, 0xc2b2ae35)
  }

  /** A copy of plain data; what cannot cross a wire is refused. */
  carry<Value>(value: Value): Value {
    return this.copy(value) as Value
  }

  private copy(value: unknown): unknown {
    switch (typeof value) {
      case 'string':
        this.text(value)
        return value
      case 'number':
        this.number(value)
        return value
      case 'boolean':
        this.number(value ? 2 : 1)
        return value
      case 'undefined':
        return undefined
      case 'object':
        return this.copyObject(value)
      default:
        throw new TypeError(`A ${typeof value} cannot cross the store port.`)
    }
  }

  private copyObject(value: object | null): unknown {
    if (value === null) {
      this.number(3)
      return null
    }
    if (Array.isArray(value)) {
      this.number(value.length)
      return value.map((member) => this.copy(member))
    }
    const prototype: unknown = Object.getPrototypeOf(value)
    if (prototype !== Object.prototype && prototype !== null) {
      throw new TypeError(`A ${value.constructor.name} cannot cross the store port.`)
    }
    const copied: Record<string, unknown> = {}
    for (const key in value) copied[key] = this.copy((value as Record<string, unknown>)[key])
    return copied
  }

  /** Adds a line to the story; the line is only made if it is kept. */
  add(line: () => string): void {
    this.lines?.push(line())
  }
}
