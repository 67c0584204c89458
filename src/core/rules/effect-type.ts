// The types of effects: a side effect that an instance of decider `order` asks for is a child run of type `order/charge`. No
// type that a user declares has a slash, so the two never meet.

const separator = '/'

/** The type of the runs that perform an effect of a decider. */
export function effectType(decider: string, effect: string): string {
  return `${decider}${separator}${effect}`
}

/** Whether runs of that type are effects. */
export function isEffectType(type: string): boolean {
  return type.includes(separator)
}
