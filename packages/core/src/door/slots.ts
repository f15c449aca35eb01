import type { Decision } from '../decision/outcome.ts'
import type { Caller } from '../caller.ts'
import type { Tool } from '../tools/tool.ts'
export type CapInput = readonly unknown[]
export interface HeldSlots { release(): void }
export interface Slots { capsOf(tool: Tool, caller: Caller): readonly unknown[]; acquire(caps: readonly unknown[], o: object): HeldSlots | Decision | Promise<HeldSlots | Decision> }
export function parseCaps(x: unknown, g: unknown): readonly unknown[] { void x; void g; return [] }
export function createSlots(x: unknown): Slots { void x; return { capsOf: () => [], acquire: () => ({ release() {} }) } }
