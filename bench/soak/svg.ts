// SVG as text: elements whose attributes and content are escaped, and coordinates short enough to read.

export type Attributes = Readonly<Record<string, string | number>>

/** An element around others, or around nothing. */
export function element(name: string, attributes: Attributes, ...inside: readonly string[]): string {
  const given = Object.entries(attributes).map(([key, value]) => ` ${key}="${escape(shown(value))}"`)
  const open = `<${name}${given.join('')}`
  return inside.length === 0 ? `${open}/>` : `${open}>${inside.join('')}</${name}>`
}

export function text(content: string, attributes: Attributes): string {
  return element('text', attributes, escape(content))
}

/** What is shown to a reader who rests the pointer on the element that it is in. */
export function title(content: string): string {
  return element('title', {}, escape(content))
}

/** A line through points; it is interrupted where there is none, and a point by itself is a dot. */
export function pathOf(points: readonly (readonly [number, number] | null)[]): string {
  let path = ''
  points.forEach((point, index) => {
    if (point === null) return
    const [x, y] = point.map(shown)
    const isFirst = (points[index - 1] ?? null) === null
    const isLast = (points[index + 1] ?? null) === null
    path += `${isFirst ? 'M' : 'L'}${x} ${y}${isFirst && isLast ? 'h0' : ''}`
  })
  return path
}

function shown(value: string | number): string {
  return typeof value === 'string' ? value : String(Math.round(value * 10) / 10)
}

function escape(content: string): string {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
