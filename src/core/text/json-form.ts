// Examines JSON from an untrusted source, without ever throwing.

/** The value of a text; undefined if it is no JSON, which no form allows. */
export function parsedJson(text: unknown): unknown {
  if (typeof text !== 'string') return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The members of what may be an object. */
export function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return isObject(value) ? value : {}
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}

/** Whether a value is a count: a whole number from 0 on. */
export function isWhole(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

export function isTextOrNull(value: unknown): value is string | null {
  return value === null || typeof value === 'string'
}

export function areTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string')
}

/** Whether these members are numbers. */
export function areNumbers(value: unknown, ...fields: readonly string[]): boolean {
  const members = membersOf(value)
  return fields.every((field) => typeof members[field] === 'number')
}
