import type { RunSource } from './run-source.ts'
import { ConfigError } from '@toolgate/values'
import type {
  Admission,
  ApprovalStore,
  AuditSink,
  AvailabilitySource,
  Clock,
  ConnectionSource,
  CounterStore,
  ReplicaLease,
  StateStore,
  Telemetry,
} from '../ports/ports.ts'
import type { GrantStore } from '../ports/grants.ts'
import type { Redactor } from '@toolgate/values/redact'

/** Lists the functions of a port. The type requires all functions of the port. */
function functionsOf<Port extends object>(functions: Readonly<Record<FunctionKeys<Port>, true>>): readonly string[] {
  return Object.keys(functions)
}

type FunctionKeys<Port> = {
  [Key in keyof Port]-?: undefined extends Port[Key]
    ? never
    : Port[Key] extends (...args: never[]) => unknown
      ? Key
      : never
}[keyof Port]

/** The functions that each port must have. */
const PORTS = {
  admission: functionsOf<Admission>({ admit: true }),
  availability: functionsOf<AvailabilitySource>({ get: true, subscribe: true }),
  connections: functionsOf<ConnectionSource>({ missing: true, subscribe: true }),
  runs: functionsOf<RunSource>({ of: true }),
  counters: functionsOf<CounterStore>({ peek: true, take: true, giveBack: true, settle: true }),
  approvals: functionsOf<ApprovalStore>({
    request: true,
    get: true,
    list: true,
    decide: true,
    consume: true,
    giveBack: true,
  }),
  grantStore: functionsOf<GrantStore>({
    create: true,
    get: true,
    find: true,
    list: true,
    take: true,
    giveBack: true,
    revoke: true,
  }),
  state: functionsOf<StateStore>({ get: true, set: true, add: true, take: true, list: true, subscribe: true }),
  lease: functionsOf<ReplicaLease>({ lapse: true, onEnd: true }),
  redactor: functionsOf<Redactor>({ redactText: true, redactValue: true }),
  telemetry: functionsOf<Telemetry>({ startCall: true }),
  audit: functionsOf<AuditSink>({ write: true, flush: true, close: true }),
  clock: functionsOf<Clock>({ monotonicMs: true, wallMs: true }),
}

/** The options that are functions themselves. */
const FUNCTIONS = ['validateInput', 'mayApprove', 'onFault', 'onWarning'] as const

type GivenPorts = Readonly<Partial<Record<keyof typeof PORTS | (typeof FUNCTIONS)[number], unknown>>>

/**
 * Checks that the gate can call its ports. Otherwise a null option would be replaced by the default, and the first call
 * would find out that a store was not awaited.
 *
 * @throws {ConfigError} naming the option, and the function that it lacks
 */
export function checkPorts(options: GivenPorts): void {
  for (const name of FUNCTIONS)
    if (options[name] !== undefined && typeof options[name] !== 'function')
      throw new ConfigError(name, 'must be a function')
  for (const [name, functions] of Object.entries(PORTS) as [keyof typeof PORTS, readonly string[]][]) {
    const port = options[name]
    if (port === undefined) continue
    const lacks = functions.find((key) => !hasFunction(port, key))
    if (lacks !== undefined) throw new ConfigError(name, `must be an object with the function "${lacks}"`)
  }
}

function hasFunction(port: unknown, key: string): boolean {
  return (
    typeof port === 'object' && port !== null && typeof (port as Readonly<Record<string, unknown>>)[key] === 'function'
  )
}
