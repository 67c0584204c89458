// Another program that uses the SQLite file, in a process of its own: a worker that waits for it inside the driver stops his whole
// process, and must not stop the one who would let go. He writes, or reads, for so long, and says when he has begun.

import { setTimeout } from 'node:timers/promises'
import { loadFileDriver } from '../../src/stores/sqlite/driver/file-driver.ts'

const [path = '', what = '', ms = '0'] = process.argv.slice(2)
process.on('disconnect', () => process.exit())
const open = await loadFileDriver('libsql')
const database = open(path)
database.exec('pragma busy_timeout = 5000')
database.exec(what === 'writes' ? 'begin immediate' : 'begin')
// A transaction that only reads begins with its first look.
database.prepare('select count(*) from runs').get([])
process.send?.('begun')
await setTimeout(Number(ms))
database.exec('rollback')
database.close()
process.exit()
