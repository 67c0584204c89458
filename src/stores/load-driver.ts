// Drivers are installed by those who use them: a store loads its own when it is opened, and says which one is missing.

import { HoldfastError, messageOf } from '../core/error.ts'

/** Loads a package. Throws STORE_UNKNOWN with the command that installs it. `what` names the store that needs it. */
export async function loadDriver<Module>(name: string, what: string, load: () => Promise<Module>): Promise<Module> {
  try {
    return await load()
  } catch (error) {
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND'
    const message = isMissing
      ? `${what} needs a package that is not installed. Run: npm install ${name}`
      : `The package ${name} cannot be loaded here: ${messageOf(error)}`
    throw new HoldfastError('STORE_UNKNOWN', message, { cause: error })
  }
}
