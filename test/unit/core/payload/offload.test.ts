import { describe, expect, it } from 'vitest'
import { jsonCodec, type Place } from '../../../../src/core/payload/codec.ts'
import { HoldfastError } from '../../../../src/core/errors/error.ts'
import { isLeftToOthers } from '../../../../src/core/errors/left-to-others.ts'
import { Payloads, type Offload } from '../../../../src/core/payload/payload.ts'

const place: Place = { namespace: '', runId: 'run-1', seq: 3, kind: 'step-succeeded', name: 'charge', id: null }
const payloads = new Payloads(jsonCodec())

describe('offloading', () => {
  function memory(thresholdBytes: number) {
    const objects = new Map<string, string>()
    const offload: Offload = {
      thresholdBytes,
      async put(text, at) {
        objects.set(`${at.runId}/${at.seq}`, text)
        return `${at.runId}/${at.seq}`
      },
      async get(reference) {
        const text = objects.get(reference)
        if (text === undefined) throw new Error('gone')
        return text
      },
    }
    return { objects, offload }
  }

  it('takes texts past the threshold, in bytes, and leaves the others in the journal', async () => {
    const { objects, offload } = memory(8)
    const offloading = new Payloads(jsonCodec(), offload)
    expect(offloading.keep('éééé', place)).toBe('éééé')
    const kept = await offloading.keep('éééé.', place)
    expect(kept).toBe('offload:run-1/3')
    expect([...objects.values()]).toEqual(['éééé.'])
    expect(await offloading.fetch(kept)).toBe('éééé.')
    expect(offloading.fetch('éééé')).toBe('éééé')
  })

  it.each(['offload:x', 'inline:x', 'inline:offload:x', 'offload:', 'inline:', '', 'off', '{"a":1}'])(
    'never mistakes the inline text %j for a reference',
    (text) => {
      for (const one of [payloads, new Payloads(jsonCodec(), memory(1000).offload)]) {
        expect(one.fetch(one.keep(text, place) as string)).toBe(text)
      }
    },
  )

  it('that fails is STORE_UNAVAILABLE, with the cause', async () => {
    const cause = new Error('503')
    const offload: Offload = {
      thresholdBytes: 0,
      put() {
        throw cause
      },
      get: () => Promise.reject(cause),
    }
    const offloading = new Payloads(jsonCodec(), offload)
    await expect(offloading.keep('text', place)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', cause })
    await expect(offloading.fetch('offload:a')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', cause })
  })

  it('with a port that answers nonsense is STORE_UNAVAILABLE and never a wrong text', async () => {
    const nonsense = { thresholdBytes: 0, put: async () => undefined, get: async () => undefined } as unknown as Offload
    const offloading = new Payloads(jsonCodec(), nonsense)
    const unavailable = { code: 'STORE_UNAVAILABLE' }
    await expect(offloading.fetch('offload:a')).rejects.toMatchObject(unavailable)
    await expect(offloading.keep('text', place)).rejects.toMatchObject(unavailable)
  })

  it.each([
    ['nothing', ''],
    ['a line break', 'a\nb'],
    ['an escape sequence', '\u001B]52;c;x\u0007'],
    ['a zero byte', 'run-1/3\u0000.txt'],
    ['a space around it', ' run-1/3'],
    ['a megabyte', 'x'.repeat(1024 * 1024)],
    ['a path out of a folder', '../../etc/passwd'],
    ['a path out of a folder, further in', 'runs/../../etc/passwd'],
    ['a path from the root', '/etc/passwd'],
    ['a path of Windows', '..\\..\\secrets'],
    ['a drive', 'C:/secrets'],
    ['an address of the cloud', 'http://169.254.169.254/latest/meta-data'],
    ['an address without a scheme', '//169.254.169.254/latest'],
    ['a file', 'file:///etc/passwd'],
    ['an encoded path', '%2e%2e%2fetc%2fpasswd'],
    ['a query', 'key?versionId=1'],
    ['another host', 'user@host:key'],
    ['letters that look alike', 'ｒuns/1'],
  ])('never hands a reference to a port that none can have answered: %s', async (_, reference) => {
    const asked: string[] = []
    const offload: Offload = {
      thresholdBytes: 1,
      put: async () => reference,
      get: async (given) => {
        asked.push(given)
        return '1'
      },
    }
    const offloading = new Payloads(jsonCodec(), offload)
    const fetched = await offloading.fetch(`offload:${reference}`)
    expect(asked).toEqual([])
    expect(() => offloading.decode(fetched, place)).toThrow(expect.objectContaining({ code: 'PAYLOAD_CORRUPT' }))
    // Nor is it written: it could not be read again.
    await expect(offloading.keep('text', place)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  })

  it('without a port says which one is missing, so that nobody waits for it here', async () => {
    const error: unknown = await Promise.resolve(payloads.fetch('offload:a')).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'INVALID_OPTION', details: { port: 'offload', reference: 'a' } })
    expect([isLeftToOthers(error), isLeftToOthers(new HoldfastError('INVALID_OPTION', 'x'))]).toEqual([true, false])
  })

  it.each([
    '0',
    'reference',
    '019a8b6e-7c1d-7000-8f3a-5b2c9d4e6f70',
    'runs/2026/11/abc.json',
    'a=1/b=2',
    'Zm9v+YmFy/==',
    'x@2',
    '..a/b..',
  ])('takes a key for a reference: %s', async (reference) => {
    const offload: Offload = { thresholdBytes: 1, put: async () => reference, get: async (given) => `"${given}"` }
    const offloading = new Payloads(jsonCodec(), offload)
    expect(await offloading.fetch(await offloading.keep('text', place))).toBe(`"${reference}"`)
    expect(await offloading.reading().fetch(`offload:${reference}`)).toBe(`"${reference}"`)
  })

  it('asks a port whose references are other texts which it can have answered with', async () => {
    const ours = 's3://payloads/'
    const asked: string[] = []
    const offload: Offload = {
      thresholdBytes: 1,
      put: async () => `${ours}1`,
      get: async (given) => (asked.push(given), '1'),
      accepts: (given) => {
        if (given.includes('throws')) throw new Error('no')
        return given.startsWith(ours)
      },
    }
    for (const offloading of [new Payloads(jsonCodec(), offload), new Payloads(jsonCodec(), offload).reading()]) {
      for (const forged of ['http://169.254.169.254/', 'runs/1', 'throws', `${ours}a\nb`]) {
        const fetched = await offloading.fetch(`offload:${forged}`)
        expect(() => offloading.decode(fetched, place)).toThrow(expect.objectContaining({ code: 'PAYLOAD_CORRUPT' }))
      }
      expect(await offloading.fetch(`offload:${ours}1`)).toBe('1')
    }
    expect(asked).toEqual([`${ours}1`, `${ours}1`])
  })
})
