// A vitest reporter that closes the output with one plain line, `<n> passed, <m> failed, <k> skipped`, for machines that
// read it. A test file that could not be loaded and an error outside of any test count as failed: the line never says
// that all is well when the exit code does not.

const counts = { passed: 0, failed: 0, skipped: 0 }

export default class ClosingLineReporter {
  onTestRunEnd(testModules, unhandledErrors) {
    Object.assign(counts, { passed: 0, failed: unhandledErrors.length, skipped: 0 })
    for (const testModule of testModules) {
      counts.failed += testModule.errors().length
      for (const suite of testModule.children.allSuites()) counts.failed += suite.errors().length
      for (const test of testModule.children.allTests()) {
        const { state } = test.result()
        // A test that is still pending when the run ends was cut off.
        counts[state === 'pending' ? 'failed' : state] += 1
      }
    }
    if (testModules.length === 0) counts.failed += 1
    process.once('exit', () => {
      console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`)
    })
  }
}
