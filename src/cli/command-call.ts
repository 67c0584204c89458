// One call of a command: its options, its output, the Holdfast that it opened, and its reaction to Ctrl-C. Everything that a
// command opens is closed when the command is over, however it ends.

import type { Command } from 'commander'
import type { HoldfastError } from '../core/errors/error.ts'
import type { Logger } from '../core/runtime/ports.ts'
import { createHoldfast, type Holdfast, type HoldfastOptions } from '../holdfast.ts'
import type { Store } from '../store.ts'
import { signalExits, type Io, type ProcessSignal } from './io.ts'
import { lenient } from './lenient-payloads.ts'
import { Printer } from './output/printer.ts'
import { checkStore, type StoreNeed } from './input/store-address.ts'
import { adviseModule } from './unknown-workflow.ts'
import { usage } from './usage.ts'
import { loadModule, requireWorkflows, type WorkflowModule } from './input/workflow-module.ts'

/** The options of every command. */
export interface CommonOptions {
  readonly store?: string
  readonly workflows?: string
  readonly json?: boolean
  readonly verbose?: boolean
}

export interface Need {
  readonly store: StoreNeed
  /** Refuses a module without workflows, and no module at all. @default false */
  readonly workflows?: boolean
  /** Whether the tables are created, or brought up to date, overriding the module. @default the option of the module */
  readonly migrate?: boolean
  /** Nothing is written, and an unreadable payload affects only itself. @default false */
  readonly onlyLooks?: boolean
  /** Warns if other users may open the file of the store: said by commands that prepare it or stay, not with every look. @default false */
  readonly warnsOfRights?: boolean
}

export interface Opened {
  readonly holdfast: Holdfast
  readonly store: string | Store
  readonly module: WorkflowModule | null
}

/** A signal ended the command. */
export class Interrupted extends Error {
  readonly exitCode: number
  /** Nothing more is awaited, not even the closing of open resources. */
  readonly isAtOnce: boolean

  constructor(signal: ProcessSignal, { isAtOnce = false }: { readonly isAtOnce?: boolean } = {}) {
    super(signal)
    this.exitCode = signalExits[signal]
    this.isAtOnce = isAtOnce
  }
}

export class Call {
  readonly io: Io
  readonly options: CommonOptions
  readonly printer: Printer
  private holdfast: Holdfast | null = null
  private onSignal: (signal: ProcessSignal) => void = () => undefined

  constructor(io: Io, options: CommonOptions) {
    this.io = io
    this.options = options
    this.printer = new Printer(io, { isJson: options.json === true, isVerbose: isVerbose(io, options) })
  }

  /**
   * Opens the store, with the workflows and options of the module if one is named. Values in `about` override the common
   * options.
   */
  async open(need: Need, about: Pick<CommonOptions, 'store' | 'workflows'> = {}): Promise<Opened> {
    const module = await this.module(need.workflows === true, about.workflows)
    const { store: _, ...own } = module?.options ?? {}
    const store = this.named(module, need.store, about.store)
    const workflows = module?.definitions ?? []
    // The compiler cannot know which services the module's workflows need; the author of the module does.
    const payloads = need.onlyLooks === true ? lenient(own) : {}
    const migrate = need.migrate === undefined ? onlyIfThere(need, store) : { migrate: need.migrate }
    const options = {
      logger: need.warnsOfRights === true ? this.printer.logger() : withoutRights(this.printer.logger()),
      ...own,
      ...payloads,
      ...migrate,
      store,
      workflows,
    } as HoldfastOptions
    const holdfast = await createHoldfast(options)
    this.holdfast = holdfast
    return { holdfast, store, module }
  }

  /** The store that is named, or that of the module, without opening it. */
  async store(need: StoreNeed): Promise<string | Store> {
    return this.named(await this.module(false), need)
  }

  /** The name of the module: as it is given here, or by the common options. */
  moduleName(named?: string): string | undefined {
    return named ?? this.options.workflows ?? nonEmpty(this.io.env['HOLDFAST_WORKFLOWS'])
  }

  /** The module that is named: here, or by the common options. */
  async module(isNeeded: boolean, named?: string): Promise<WorkflowModule | null> {
    const name = this.moduleName(named)
    if (name === undefined) {
      if (!isNeeded) return null
      throw noModule()
    }
    const module = await loadModule(name, this.io.cwd)
    if (isNeeded) requireWorkflows(module)
    return module
  }

  private named(module: WorkflowModule | null, need: StoreNeed, store?: string): string | Store {
    const named = store ?? this.options.store ?? nonEmpty(this.io.env['HOLDFAST_STORE'])
    return checkStore(named ?? module?.options.store, need, this.io.cwd)
  }

  /** Does this on SIGINT and SIGTERM, instead of exiting at once. */
  handleSignals(handler: (signal: ProcessSignal) => void): void {
    this.onSignal = handler
  }

  /** Performs the work of a command. A signal that it does not handle ends it. */
  async perform(work: (call: Call) => Promise<void>): Promise<void> {
    let ignore: () => void = () => undefined
    const interrupted = new Promise<never>((_, reject) => {
      this.onSignal = (signal) => reject(new Interrupted(signal))
      ignore = this.io.onSignal((signal) => this.onSignal(signal))
    })
    try {
      await Promise.race([work(this), interrupted])
    } catch (error) {
      if (error instanceof Interrupted && error.isAtOnce) this.holdfast = null
      throw adviseModule(error, this.moduleName())
    } finally {
      // From here on a signal has its usual effect.
      ignore()
      await this.holdfast?.close()
    }
  }
}

export function noModule(): HoldfastError {
  return usage(
    'Which workflows? Name the module that exports them with --workflows ./workflows.js, or in the environment: ' +
      'HOLDFAST_WORKFLOWS=./workflows.js.',
  )
}

/** Sets the description of a command. */
export type Act = (command: Command, work: (call: Call) => Promise<void>) => void

/** Common options, examples and exit codes, as each command has them. */
export function addCommonOptions(command: Command): Command {
  return command
    .optionsGroup('Common options:')
    .option('--store <address>', 'where runs live, such as sqlite:app.db (or HOLDFAST_STORE)')
    .option('--workflows <module>', 'the module that exports the workflows (or HOLDFAST_WORKFLOWS)')
    .option('--json', 'print JSON instead of text')
    .option('--verbose', 'print stacks of errors and debug lines (or DEBUG=1)')
}

export function examples(...lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  $ holdfast ${line}`).join('\n')}`
}

/** The warning about the rights of files has their list in its details. */
function withoutRights(logger: Logger): Logger {
  const warn: Logger['warn'] = (message, details) => {
    if (details === undefined || !('sharedFiles' in details)) logger.warn(message, details)
  }
  return { ...logger, warn }
}

function isVerbose({ env }: Io, { verbose = false }: CommonOptions): boolean {
  const debug = env['DEBUG'] ?? ''
  return verbose || !['', '0', 'false'].includes(debug)
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === '' ? undefined : text
}

/**
 * A command that needs an existing store creates nothing: a mistyped schema must not become one. A file was already checked.
 */
function onlyIfThere(need: Need, store: string | Store): { readonly migrate?: false } {
  const isPostgres = typeof store === 'string' && /^postgres(?:ql)?:/.test(store)
  return need.store === 'existing' && isPostgres ? { migrate: false } : {}
}
