// Everything that can be said about the code without running it, in two lanes, one for each core of a small machine: 63 s
// instead of 105. The output of a check appears when that check has ended, so that two never mix; the first failure ends both.

import { spawn } from 'node:child_process'

/** The formatter takes as long as all others together, and uses one core. `package` looks at what `build` made. */
const lanes = [['format:check'], ['lint', 'types', 'imports', 'dead', 'build', 'package']]
const running = new Set()

function run(script) {
  return new Promise((resolve, reject) => {
    const child = spawn('npm', ['run', '--silent', script], { shell: process.platform === 'win32' })
    running.add(child)
    const output = []
    child.stdout.on('data', (chunk) => output.push(chunk))
    child.stderr.on('data', (chunk) => output.push(chunk))
    child.on('error', reject)
    child.on('close', (code) => {
      running.delete(child)
      process.stdout.write(Buffer.concat(output))
      if (code === 0) resolve()
      else reject(new Error(`npm run ${script} failed.`))
    })
  })
}

async function lane(scripts) {
  for (const script of scripts) await run(script)
}

try {
  await Promise.all(lanes.map(lane))
} catch (error) {
  console.error(error.message)
  process.exitCode = 1
  for (const child of running) child.kill()
}
