// Calls of the store as a story shows them: short enough to be read, and ids by their ends.

export function short(id: string): string {
  return id.slice(-6)
}

const mostShown = 400

export function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'undefined'
  const plain = text.replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-([0-9a-f]{12})/g, (_, tail: string) =>
    tail.slice(-6),
  )
  return plain.length > mostShown ? `${plain.slice(0, mostShown)}…` : plain
}
