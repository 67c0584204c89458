// The file that a soak writes as it goes, one line of JSON for each thing that it sees, so that nothing is lost if it is killed:
// first the setting, then samples and visits of the doctor as they come.

import { appendFileSync, writeFileSync } from 'node:fs'
import type { Sample, Setting, Soak, Visit } from './sample.ts'

export class Recording {
  private readonly samples: Sample[] = []
  private readonly visits: Visit[] = []
  private readonly setting: Setting
  private readonly file: string

  constructor(file: string, setting: Setting) {
    this.file = file
    this.setting = setting
    writeFileSync(file, lineOf('setting', setting))
  }

  get soak(): Soak {
    const { setting, samples, visits } = this
    return { setting, samples, visits }
  }

  sample(sample: Sample): void {
    this.samples.push(sample)
    appendFileSync(this.file, lineOf('sample', sample))
  }

  visit(visit: Visit): void {
    this.visits.push(visit)
    appendFileSync(this.file, lineOf('visit', visit))
  }
}

function lineOf(kind: string, value: object): string {
  return `${JSON.stringify({ kind, ...value })}\n`
}
