import type { ChildProcess } from 'node:child_process'

/**
 * Kills a process after it has printed a number of lines, at a random moment before its next expected output.
 *
 * The moment depends on the process's own mean time between outputs, so a slow disk does not change which work it
 * interrupts.
 */
export function killAfterLines(child: ChildProcess, lines: number): void {
  let [printed, outputs, firstAtMs] = [0, 0, 0]
  let timer: NodeJS.Timeout | undefined
  child.stdout?.on('data', (text: string) => {
    const nowMs = performance.now()
    outputs++
    if (outputs === 1) firstAtMs = nowMs
    printed += text.split('\n').length - 1
    if (printed < lines) return
    const meanGapMs = (nowMs - firstAtMs) / Math.max(1, outputs - 1)
    timer ??= setTimeout(() => child.kill('SIGKILL'), Math.random() * meanGapMs)
  })
  child.once('close', () => clearTimeout(timer))
}

/** Returns the time limit for a number of kills. Most take less than a second, but several seconds on a slow disk. */
export function timeFor(kills: number): { readonly timeout: number } {
  return { timeout: kills * 7000 }
}
