// A series as a line of text.

import { median } from '../numbers.ts'

const blocks = '▁▂▃▄▅▆▇█'

/** At most so many characters wide; each shows the median of as many values. */
export function sparkline(values: readonly number[], width: number): string {
  const columns = Math.min(width, values.length)
  const medians = Array.from({ length: columns }, (_, column) => {
    const [from, to] = [column, column + 1].map((edge) => Math.floor((edge * values.length) / columns))
    return median(values.slice(from, to))
  })
  const [low, high] = [Math.min(...medians), Math.max(...medians)]
  return medians.map((value) => blockOf(value, low, high)).join('')
}

/** What never changes lies low, so that it is not taken for a summit. */
function blockOf(value: number, low: number, high: number): string {
  const height = high === low ? 0 : Math.round(((value - low) / (high - low)) * (blocks.length - 1))
  return blocks[height]!
}
