// Reads XML as strictly as the pictures of a soak need it: every element is closed in its turn, every attribute is quoted and
// stands once, and nothing is left that should have been escaped.

export interface Element {
  readonly name: string
  readonly attributes: Readonly<Record<string, string>>
  /** What stands in it outside of other elements. */
  readonly text: string
}

const tag = /^<(\/?)([a-z]\w*)((?:\s+[\w:-]+="[^"<]*")*)\s*(\/?)>/i
const entity = /&(?!(?:amp|lt|gt|quot);)/

/** All elements, in the order in which they begin. Throws at the first place that is not well-formed. */
export function elementsOf(xml: string): readonly Element[] {
  const found: { name: string; attributes: Record<string, string>; text: string }[] = []
  const open: (typeof found)[number][] = []
  let rest = xml.trim()
  while (rest !== '') {
    if (!rest.startsWith('<')) {
      const end = rest.indexOf('<')
      const text = end === -1 ? rest : rest.slice(0, end)
      const inside = open.at(-1)
      if (inside === undefined || end === -1) throw new Error(`Text outside of the root: ${text.slice(0, 40)}`)
      if (entity.test(text) || text.includes('>')) throw new Error(`Not escaped: ${text.slice(0, 40)}`)
      inside.text += unescaped(text)
      rest = rest.slice(end)
      continue
    }
    const [all, closes, name = '', given = '', isEmpty] = tag.exec(rest) ?? []
    if (all === undefined) throw new Error(`No tag: ${rest.slice(0, 60)}`)
    if (closes === '/') {
      if (open.pop()?.name !== name) throw new Error(`</${name}> closes something else`)
    } else {
      if (open.length === 0 && found.length > 0) throw new Error(`<${name}> is a second root`)
      const one = { name, attributes: attributesOf(given), text: '' }
      found.push(one)
      if (isEmpty !== '/') open.push(one)
    }
    rest = rest.slice(all.length)
  }
  if (open.length > 0) throw new Error(`<${open.at(-1)!.name}> is never closed`)
  return found
}

function attributesOf(text: string): Record<string, string> {
  const attributes: Record<string, string> = {}
  for (const [, name = '', value = ''] of text.matchAll(/([\w:-]+)="([^"]*)"/g)) {
    if (name in attributes) throw new Error(`${name} stands twice`)
    if (entity.test(value)) throw new Error(`Not escaped: ${value}`)
    attributes[name] = unescaped(value)
  }
  return attributes
}

function unescaped(text: string): string {
  return text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&quot;', '"').replaceAll('&amp;', '&')
}
