// Node's own `require`, which bundlers do not see. They understand `import('a name')`, break `import(name)`, and rewrite
// `createRequire` where they see it imported; a magic comment would do for one of them each.

/** The functions that resolve packages as this runtime does, nearest first. */
export async function nativeRequires(): Promise<readonly [NodeJS.Require, ...NodeJS.Require[]]> {
  // oxlint-disable-next-line eslint/no-restricted-globals -- the one way to a module of the runtime that no bundler follows
  const { createRequire } = process.getBuiltinModule('node:module')
  // In a bundle, this file need not be where the packages are: the folder that the process was started in is the next guess.
  // oxlint-disable-next-line eslint/no-restricted-globals -- see above
  const fromFolder = createRequire(`${process.cwd()}/package.json`)
  try {
    const { here } = await import('./package-url.ts')
    return [createRequire(here), fromFolder]
  } catch {
    return [fromFolder]
  }
}
