import { createMongoAbility, type MongoAbility } from '@casl/ability'
import type { Tool } from '@toolgate/core'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { pino } from 'pino'
import { RateLimiterMemory } from 'rate-limiter-flexible'

/** Who calls, as the glue needs it. */
export interface GlueCaller {
  readonly user: string
  readonly tenant: string
  readonly session: string
  readonly roles: readonly string[]
}

export interface GlueRequest {
  readonly tool: string
  readonly input: unknown
  readonly callId: string
}

export type GlueOutcome =
  | { readonly status: 'done'; readonly output: unknown }
  | { readonly status: 'refused' | 'failed'; readonly reason: string }

export type Glue = (caller: GlueCaller, request: GlueRequest) => Promise<GlueOutcome>

/** Takes one record of a call. */
export type LogRecord = (record: object) => void

/** Writes records as JSON lines, from a buffer. */
export function logToPino(path: string): LogRecord {
  const log = pino({ base: null }, pino.destination({ dest: path, sync: false, minLength: 4096 }))
  return (record) => log.info(record)
}

/** Keeps the last records in memory, as objects. */
export function logToMemory(capacity = 10_000): LogRecord {
  const records: object[] = []
  let next = 0
  return (record) => {
    records[next] = { time: Date.now(), ...record }
    next = (next + 1) % capacity
  }
}

/**
 * Returns what a good engineer would write with well-known packages: a permission by role, the input's schema, a rate
 * limit in memory, and a record before and after the tool.
 *
 * Abilities are built once for each set of roles and schemas are compiled once for each tool.
 */
export function createGlue(tools: readonly Tool[], log: LogRecord): Glue {
  const byId = new Map(tools.map((tool) => [tool.id, tool]))
  const ajv = new Ajv2020()
  const validators = new Map<string, ValidateFunction>()
  const abilities = new Map<string, MongoAbility>()
  const limiter = new RateLimiterMemory({ points: 1_000_000, duration: 1 })

  function abilityOf(roles: readonly string[]): MongoAbility {
    const key = roles.join(' ')
    let ability = abilities.get(key)
    if (!ability)
      abilities.set(key, (ability = createMongoAbility([{ action: 'call', subject: allowedTo(tools, roles) }])))
    return ability
  }

  function validatorOf(tool: Tool): ValidateFunction {
    let validate = validators.get(tool.id)
    if (!validate) validators.set(tool.id, (validate = ajv.compile(tool.inputSchema)))
    return validate
  }

  return async (caller, { tool: id, input, callId }) => {
    const who = { call: callId, tool: id, user: caller.user, tenant: caller.tenant, session: caller.session }
    const refuse = (reason: string): GlueOutcome => {
      log({ event: 'tool_blocked', ...who, reason })
      return { status: 'refused', reason }
    }
    const tool = byId.get(id)
    if (!tool?.execute || !abilityOf(caller.roles).can('call', id)) return refuse('not_available')
    const validate = validatorOf(tool)
    if (!validate(input)) return refuse(ajv.errorsText(validate.errors))
    try {
      await limiter.consume(`${id}|${caller.tenant}|${caller.user}`)
    } catch {
      return refuse('rate_limited')
    }
    log({ event: 'tool_call', ...who, input })
    const startedMs = performance.now()
    try {
      const output: unknown = await tool.execute(input as never, undefined as never)
      log({ event: 'tool_result', ...who, duration_ms: performance.now() - startedMs })
      return { status: 'done', output }
    } catch (error) {
      log({ event: 'tool_result', ...who, duration_ms: performance.now() - startedMs, error: String(error) })
      return { status: 'failed', reason: String(error) }
    }
  }
}

/** The policy of the gate beside it, for these roles. */
function allowedTo(tools: readonly Tool[], roles: readonly string[]): string[] {
  return tools
    .filter(({ name, tags }) => {
      if (tags.includes('danger') || name.startsWith('send_')) return false
      return roles.includes('admin') || !name.startsWith('delete_')
    })
    .map(({ id }) => id)
}
