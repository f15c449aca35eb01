import type { GatewayConfig } from '../config.ts'
import { grantsSchema, toMs } from '../schema/calls.ts'
import { has, checkShape } from '../reading.ts'
import type { Section } from '../section.ts'

const DEFAULT_USES = 100

/** The bounds of grants. Without the section, approvers make none. */
export const grants: Section<GatewayConfig['grants']> = {
  schema: grantsSchema,
  read({ source }, key) {
    const written = has(source, [key]) ? checkShape(source, [key], grantsSchema) : undefined
    if (written === undefined) return undefined
    const { max, maxUses = DEFAULT_USES, by } = written
    return { maxMs: toMs(max), maxUses, ...(by !== undefined && { by }) }
  },
}
