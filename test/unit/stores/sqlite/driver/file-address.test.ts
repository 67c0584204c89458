// What names a file, and that a driver and we always mean the same one.

import { describe, expect, it } from 'vitest'
import { pathOf } from '../../../../../src/stores/sqlite/driver/file-address.ts'

describe('the address of a file', () => {
  it.each([
    ['app.db', 'app.db'],
    [':memory:', ':memory:'],
    ['/var/lib/app.db', '/var/lib/app.db'],
    ['what?.db', 'what?.db'],
    ['100%.db', '100%.db'],
    ['file:app.db', 'app.db'],
    ['file:./data/app.db', './data/app.db'],
    ['file:/var/lib/app.db', '/var/lib/app.db'],
    ['file:///var/lib/app.db', '/var/lib/app.db'],
    ['file://localhost/var/lib/app.db', '/var/lib/app.db'],
    ['file:my%20app.db', 'my app.db'],
    ['file:what%3F.db', 'what?.db'],
    ['file::memory:', ':memory:'],
    // Read once more, as an address of a store or by a driver, these would name something else.
    ['file:file:app.db', './file:app.db'],
    ['file:////evil.example/app.db', '/evil.example/app.db'],
  ])('%s names %s', (address, path) => {
    expect(pathOf(address)).toBe(path)
    expect(pathOf(path)).toBe(path)
  })

  it.each([
    ['file:', 'names no file'],
    ['//app.db', "Write the path of a file without them, 'app.db'"],
    ['//./data/app.db', "'./data/app.db'"],
    ['file://', 'names no file'],
    ['file:app.db?mode=memory&cache=shared', 'takes no options'],
    ['file:app.db?vfs=unix-none', 'takes no options'],
    ['file:app.db#x', '%23'],
    ['file://server/share/app.db', 'another machine'],
    ['file:100%.db', '%25'],
    ['file:app%00.db', 'zero byte'],
    ['app\0.db', 'zero byte'],
  ])('%j is refused with what to do', (address, message) => {
    expect(() => pathOf(address)).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION', message: expect.stringContaining(message) as unknown }),
    )
  })
})
