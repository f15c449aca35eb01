import { readFileSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import type { Clock } from '@toolgate/core/stores'

/** The clocks of this machine, the same for all processes. Node's own monotonic clock starts with each process. */
export const machineClock: Clock = {
  monotonicMs() {
    const [seconds, nanoseconds] = process.hrtime()
    return seconds * 1e3 + nanoseconds / 1e6
  },
  wallMs: () => Date.now(),
}

/** Returns an id of this boot of the machine, if the system has one. */
export function readBootId(): string | undefined {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return undefined
  }
}

/**
 * Converts the times of an earlier boot to this boot, because the monotonic clock has restarted.
 *
 * The time before the latest write and since this boot is known from the monotonic clocks. Only the time between comes
 * from the wall clock; if that went back, it counts as 0. So a use expires late rather than early. Without boot ids, a
 * clock that is behind the stored time indicates another boot. If the clock has already passed the old times, they only
 * look more recent than they are.
 */
export function carryOverBoot(db: DatabaseSync, clock: Clock, bootId: string | undefined): void {
  const nowMs = clock.monotonicMs()
  const wallMs = clock.wallMs()
  const machine = db.prepare('SELECT boot_id, monotonic_ms, wall_ms FROM machine').get()
  if (!machine) {
    db.prepare('INSERT INTO machine (id, boot_id, monotonic_ms, wall_ms) VALUES (1, ?, ?, ?)').run(
      bootId ?? null,
      nowMs,
      wallMs,
    )
    return
  }
  const earlierMs = Number(machine['monotonic_ms'])
  const isOtherBoot = bootId === undefined ? nowMs < earlierMs : machine['boot_id'] !== bootId
  if (!isOtherBoot) return
  const bootedAt = wallMs - nowMs
  const offMs = Math.max(0, bootedAt - Number(machine['wall_ms']))
  // The latest write was `offMs` before this boot, whose clock started at 0.
  const shiftMs = -offMs - earlierMs
  db.prepare('UPDATE counter_uses SET at_ms = at_ms + ?').run(shiftMs)
  db.prepare('UPDATE counter_keys SET passes_at = passes_at + ?').run(shiftMs)
  // The processes that held or waited for a lease are gone.
  db.exec('DELETE FROM leases; DELETE FROM lease_waiters')
  db.prepare('UPDATE machine SET boot_id = ?, monotonic_ms = ?, wall_ms = ?').run(bootId ?? null, nowMs, wallMs)
}
