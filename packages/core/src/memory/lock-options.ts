import type { LockOptions } from '../ports/ports.ts'
import { checkShape, shapeOf } from '@toolgate/values'

const LOCK_OPTIONS = shapeOf<LockOptions>({ signal: true, deadlineMs: true })

/** Checks the options. @throws {ConfigError} for an unknown option of `acquire` */
export function checkLockOptions(options: LockOptions): void {
  checkShape('acquire', options, LOCK_OPTIONS)
}
