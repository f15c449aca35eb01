import { execFileSync } from 'node:child_process'
import { copyFileSync } from 'node:fs'
import { homedir } from 'node:os'
import path from 'node:path'
import { binary } from '../support/binaries.ts'
import { describeClients, programClient } from './support/clients.ts'
import { BOTH, call, CHECKED, describeServer, prompt, read, type RealServer, UNKNOWN } from './support/compare.ts'
import { CACHE, installed } from './support/install.ts'

/** A server and a client of `rmcp`. Debian has no `cargo` that builds them, so CI does without if there is no newer one. */

const NEEDED = 88
/** Kept, so that a build that was interrupted goes on. */
const TARGET = path.join(CACHE, 'rust-target')
const PROGRAMS = ['server', 'client'] as const
const cargo = binary('cargo') ?? binary(path.join(homedir(), '.cargo/bin/cargo'))

function serverOf(folder: string): RealServer {
  return {
    name: 'rmcp',
    command: path.join(folder, 'server'),
    args: [],
    httpArgs: (port) => [`127.0.0.1:${port}`],
    eras: BOTH,
    lists: [2, 1, 1, 1],
    asks: [
      call('add', { a: 1, b: 2 }),
      call('add', { a: 1, b: 2, note: null }),
      call('add', { a: '1', b: 2 }, ['must be integer', CHECKED]),
      call('fail', {}),
      read('note://one'),
      read('note://Two'),
      read('note://none', ['Resource not found', UNKNOWN]),
      prompt('review', { language: 'Rust' }),
    ],
  }
}

/** Returns what is missing, as a person would say it. */
function missing(): string | undefined {
  if (cargo === undefined) return 'cargo is not on this machine'
  const [, minor] = /^cargo 1\.(\d+)/.exec(execFileSync(cargo, ['--version'], { encoding: 'utf8' })) ?? []
  return Number(minor) < NEEDED ? `cargo is older than 1.${NEEDED}` : undefined
}

const reason = missing()
if (cargo === undefined || reason !== undefined) console.warn(`left out: the tests of rmcp, as ${reason}`)
else {
  const folder = await installed('rust', ['Cargo.toml', 'src/**/*.rs'], async (to, sources, run) => {
    await run(cargo, ['build', '--quiet', '--manifest-path', path.join(sources, 'Cargo.toml'), '--target-dir', TARGET])
    for (const name of PROGRAMS) copyFileSync(path.join(TARGET, 'debug', name), path.join(to, name))
  })
  if (folder !== undefined) {
    describeServer(serverOf(folder), () => folder)
    const client = path.join(folder, 'client')
    describeClients({
      'rmcp, with initialize': programClient(client, [], 'legacy'),
      'rmcp, of 2026-07-28': programClient(client, [], 'modern'),
    })
  }
}
