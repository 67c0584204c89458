// Drivers are installed by the users of a store: a store loads its own when it is opened, and says which one is missing.
//
// A driver with native code is loaded so that bundlers do not see it. They cannot put it into a bundle, and a build would
// fail for applications that have not installed it.

import { HoldfastError, messageOf } from '../core/errors/error.ts'
import { nativeRequires } from './native-require.ts'

/**
 * Loads a package that only its users have installed, without going through a bundle. `need` names the feature that needs it.
 * `before` is the error of another way to load it. Throws STORE_UNKNOWN.
 */
export async function loadNativeDriver<Module>(name: string, need: string, before?: unknown): Promise<Module> {
  const found = (await nativeRequires()).find((require) => canResolve(require, name))
  if (found === undefined) throw isMissing(before) ? missing(name, need) : unloadable(name, before)
  try {
    return found(name) as Module
  } catch (error) {
    throw unloadable(name, error)
  }
}

function missing(name: string, need: string): HoldfastError {
  const [install = name] = /^(?:@[^/]+\/)?[^/]+/.exec(name) ?? []
  const message = `${need} needs the package ${install}, which is not installed. Run: npm install ${install}`
  return new HoldfastError('STORE_UNKNOWN', message)
}

function unloadable(name: string, cause: unknown): HoldfastError {
  return new HoldfastError('STORE_UNKNOWN', `The package ${name} cannot be loaded here: ${messageOf(cause)}`, { cause })
}

/** Nothing was tried before, or it was not found there either. */
function isMissing(before: unknown): boolean {
  const code = (before as { readonly code?: unknown } | undefined)?.code
  return before === undefined || code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND'
}

function canResolve(require: NodeJS.Require, name: string): boolean {
  try {
    require.resolve(name)
    return true
  } catch {
    return false
  }
}
