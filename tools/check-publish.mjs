// Refuses to publish a package that does not say where its source really is: npm runs this before `npm publish` (`prepublishOnly`).
// The registry needs `repository` for the provenance of a release, and users need all three to report a defect.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** The address of each field, as `npm pkg set` names it. */
const fields = { repository: 'repository.url', homepage: 'homepage', bugs: 'bugs.url' }

const manifest = JSON.parse(await readFile(join(process.cwd(), 'package.json'), 'utf8'))

/** A field may be a text, or an object with its address as `url`. */
function addressOf(name) {
  const value = manifest[name]
  const address = typeof value === 'object' && value !== null ? value.url : value
  return typeof address === 'string' ? address.trim() : ''
}

/** Nobody can own a host under `.example`: what stands there leads nowhere, and to no stranger either. */
function isReserved(address) {
  return URL.canParse(address) && /(^|\.)example$/.test(new URL(address).hostname)
}

const missing = Object.keys(fields).filter((name) => addressOf(name) === '')
const reserved = Object.keys(fields).filter((name) => isReserved(addressOf(name)))
if (missing.length > 0 || reserved.length > 0) {
  const faults = [
    ...(missing.length > 0 ? [`package.json has no ${missing.join(', ')}`] : []),
    ...(reserved.length > 0
      ? [`${reserved.join(', ')} in package.json is an address under .example, which leads nowhere`]
      : []),
  ]
  const command = [...missing, ...reserved].map((name) => `${fields[name]}=<address>`).join(' ')
  console.error(
    `This package cannot be published: ${faults.join('; ')}. Set the public address with: npm pkg set ${command}`,
  )
  process.exitCode = 1
}
