// A codec with keys that a test can take away and give back: what was written with a key that is not there cannot be read.

import { corrupt, jsonCodec, type Codec } from '../../src/core/payload/codec.ts'

export interface LockableCodec extends Codec {
  /** The key to write with. */
  current: string
  /** The keys that are there. */
  readonly present: Set<string>
}

export function lockableCodec(...present: readonly string[]): LockableCodec {
  const json = jsonCodec()
  const codec: LockableCodec = {
    current: present.at(-1) ?? 'a',
    present: new Set(present),
    encode: (value, place) => `${codec.current}|${json.encode(value, place)}`,
    decode(text, place) {
      const [key = '', ...rest] = text.split('|')
      if (!codec.present.has(key)) throw corrupt(place, `the key "${key}" is not here`, undefined, key)
      return json.decode(rest.join('|'), place)
    },
  }
  return codec
}
