// Drivers are installed by the users of a store: a store loads its own when it is opened, and says which one is missing.
//
// A driver with native code must not be seen by bundlers. They cannot put it into a bundle, and a build would fail for those who
// have not installed it. A magic comment would do for one bundler each, and all of them understand `import('a name')` and break
// `import(name)`; so it is loaded with Node's own `require`.

import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import { HoldfastError, messageOf } from '../core/error.ts'

/** Loads a package with native code that nobody needs to have installed. Throws STORE_UNKNOWN if it cannot be loaded. */
export async function loadNativeDriver<Module>(name: string, need: string): Promise<Module> {
  const requires = await allRequires()
  const found = requires.find((require) => canResolve(require, name))
  if (found === undefined) throw missingDriver(name, need)
  try {
    return found(name) as Module
  } catch (error) {
    throw unloadableDriver(name, error)
  }
}

/** `need` is a sentence that says what needs the package, and why. */
export function missingDriver(name: string, need: string, cause?: unknown): HoldfastError {
  const [install = name] = /^(?:@[^/]+\/)?[^/]+/.exec(name) ?? []
  const message = `${need} needs the package ${install}, which is not installed. Run: npm install ${install}`
  return new HoldfastError('STORE_UNKNOWN', message, { cause })
}

export function unloadableDriver(name: string, cause: unknown): HoldfastError {
  return new HoldfastError('STORE_UNKNOWN', `The package ${name} cannot be loaded here: ${messageOf(cause)}`, { cause })
}

/** In a bundle, this file need not be where the packages are: the folder that the process was started in is the next guess. */
async function allRequires(): Promise<readonly NodeJS.Require[]> {
  const fromFolder = createRequire(resolve('package.json'))
  try {
    const { requireFromHere } = await import('./require-from-here.ts')
    return [requireFromHere, fromFolder]
  } catch {
    return [fromFolder]
  }
}

function canResolve(require: NodeJS.Require, name: string): boolean {
  try {
    require.resolve(name)
    return true
  } catch {
    return false
  }
}
