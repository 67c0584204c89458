// Prints the bill of materials of what is installed with the package, as CycloneDX: `npm run -s sbom > sbom.json`. npm writes
// it from the lock file. It is asked for everything, and what is only for our own work is taken out here: `npm sbom --omit dev`
// (seen with 11.19) also leaves out what is installed with the package if our own work needs it, too.

import { execFile } from 'node:child_process'
import { resolve } from 'node:path'
import { promisify } from 'node:util'

const { stdout } = await promisify(execFile)('npm', ['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only'], {
  cwd: resolve(import.meta.dirname, '..'),
  maxBuffer: 64 * 1024 * 1024,
})
const bill = JSON.parse(stdout)

const isOurWork = ({ properties = [] }) =>
  properties.some(({ name, value }) => name === 'cdx:npm:package:development' && value === 'true')
const components = bill.components.filter((component) => !isOurWork(component))
const kept = new Set([bill.metadata.component['bom-ref'], ...components.map((component) => component['bom-ref'])])
const dependencies = bill.dependencies
  .filter(({ ref }) => kept.has(ref))
  .map(({ ref, dependsOn = [] }) => ({ ref, dependsOn: dependsOn.filter((one) => kept.has(one)) }))
if (components.length === 0) throw new Error('npm sbom names nothing that is installed with the package')

console.log(JSON.stringify({ ...bill, components, dependencies }, null, 2))
