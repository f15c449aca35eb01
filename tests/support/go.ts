import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

export interface GoProgram {
  readonly file: string
  remove(): void
}

/**
 * Builds a program of `tests/support` with the packages `note` and `tlog` of Go's checksum database. They come from Go's own
 * sources, so nothing is downloaded.
 */
export function buildGo(go: string, program: string): GoProgram {
  const folder = mkdtempSync(path.join(tmpdir(), 'toolgate-go-'))
  const remove = () => rmSync(folder, { recursive: true, force: true })
  try {
    const env = {
      ...process.env,
      GOTOOLCHAIN: 'local',
      GOFLAGS: '-mod=mod',
      GOPROXY: 'off',
      GOWORK: 'off',
      HOME: process.env['HOME'] ?? folder,
    }
    const run = (...args: readonly string[]) => execFileSync(go, args, { cwd: folder, env, encoding: 'utf8' })
    const sources = path.join(run('env', 'GOROOT').trim(), 'src/cmd/vendor/golang.org/x/mod/sumdb')
    for (const name of ['note', 'tlog']) {
      cpSync(path.join(sources, name), path.join(folder, name), { recursive: true, dereference: true })
      for (const file of readdirSync(path.join(folder, name))) {
        const place = path.join(folder, name, file)
        // Early versions name the package that has since become part of Go.
        writeFileSync(place, readFileSync(place, 'utf8').replace('"golang.org/x/crypto/ed25519"', '"crypto/ed25519"'))
      }
    }
    cpSync(path.join(import.meta.dirname, program), folder, { recursive: true })
    const [version = '1.19'] = /\d+\.\d+/.exec(run('env', 'GOVERSION')) ?? []
    writeFileSync(path.join(folder, 'go.mod'), `module c2sp.test\n\ngo ${version}\n`)
    run('build', '-o', 'program', '.')
    return { file: path.join(folder, 'program'), remove }
  } catch (error) {
    remove()
    throw error
  }
}
