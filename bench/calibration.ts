// How fast this processor executes JavaScript just now: a loop that does what the engine does most, which is small objects,
// JSON, a map and promises. The processor time of a run as a multiple of it depends on the code, and little on the machine
// and its neighbours.

/** Rounds of one measurement: some 50 ms. */
const rounds = 10_000

/** So many objects are alive at once. */
const alive = 500

/** The processor time of a round, in µs. */
export async function calibrate(): Promise<number> {
  const cpu = process.cpuUsage()
  const sum = await loop(rounds)
  const { user, system } = process.cpuUsage(cpu)
  // Uses the result, so that no round can be left out.
  if (sum !== (rounds * (rounds - 1)) / 2) throw new Error(`The calibration loop has lost count: ${sum}.`)
  return (user + system) / rounds
}

async function loop(count: number): Promise<number> {
  const known = new Map<string, { readonly order: number; readonly text: string }>()
  let sum = 0
  for (let order = 0; order < count; order += 1) {
    const text = JSON.stringify({ order, name: 'calibration', data: [order, order + 1], meta: null })
    known.set(`run-${order}`, { order, text })
    if (order >= alive) known.delete(`run-${order - alive}`)
    const { order: read } = await Promise.resolve(JSON.parse(text) as { readonly order: number })
    sum += read
  }
  return sum
}
