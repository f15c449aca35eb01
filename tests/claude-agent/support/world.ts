import { createGate, type Gate, type GateOptions, memoryAudit, type ToolRecord } from '@toolgate/core'
import {
  ADMINS_DELETE,
  createTestAudit,
  createWitness,
  type Witness,
} from '../../../packages/adapters/src/testing/world.ts'

export interface World {
  readonly gate: Gate
  readonly witness: Witness
  readonly audit: ReturnType<typeof memoryAudit> & { attempts(): readonly string[] }
}

/** A gate of tools that say what ran, beside those that are given. Only admins see `delete_all`. */
export function createWorld({ tools, ...options }: Omit<GateOptions, 'tools'> & { tools?: ToolRecord } = {}): World {
  const witness = createWitness()
  const audit = createTestAudit()
  const own = Object.fromEntries(
    ['alpha', 'delete_all', 'search'].map((name) => [
      name,
      { description: `Does ${name}.`, execute: witness.body(name) },
    ]),
  )
  const gate = createGate({ tools: { ...own, ...tools }, sources: [], policy: ADMINS_DELETE, audit, ...options })
  return { gate, witness, audit }
}
