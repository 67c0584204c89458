// Payloads for read-only commands: a payload that cannot be read here (its key or its codec is missing, or it is offloaded)
// is shown as the error that says so, and everything around it is still shown. Never used by a command that writes.

import { jsonCodec, type Codec } from '../core/payload/codec.ts'
import { HoldfastError, isHoldfastError } from '../core/errors/error.ts'
import { absent, isKey } from '../core/payload/offload-reference.ts'
import type { Offload } from '../core/payload/payload.ts'
import type { HoldfastOptions } from '../holdfast.ts'

export function lenient(own: Partial<HoldfastOptions>): { readonly codec: Codec; readonly offload: Offload } {
  const { codec = jsonCodec(), offload } = own
  return {
    codec: {
      ...(codec.isPlaceless === undefined ? {} : { isPlaceless: codec.isPlaceless }),
      encode: (value, place) => codec.encode(value, place),
      decode: (text, place) => {
        if (text.startsWith(absent)) return unreadable(text.slice(absent.length))
        try {
          return codec.decode(text, place)
        } catch (error) {
          return isHoldfastError(error, 'PAYLOAD_CORRUPT') ? error : unreadable('the codec failed', error)
        }
      },
    },
    offload: {
      thresholdBytes: offload?.thresholdBytes ?? Infinity,
      // Without the port its references are unknown, and nothing is fetched.
      accepts: (reference) =>
        offload === undefined || (offload.accepts === undefined ? isKey(reference) : offload.accepts(reference)),
      put: async () => {
        throw unreadable('a read-only command writes nothing')
      },
      get: async (reference) => {
        try {
          return offload === undefined ? `${absent}it is offloaded` : await offload.get(reference)
        } catch {
          return `${absent}it is offloaded, and cannot be fetched`
        }
      },
    },
  }
}

function unreadable(why: string, cause?: unknown): HoldfastError {
  const message = `This payload cannot be read here: ${why}. Name the module that has its codec with --workflows.`
  return new HoldfastError('PAYLOAD_CORRUPT', message, cause === undefined ? {} : { cause })
}
