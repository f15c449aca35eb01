// Builds the command: `packages/cli/dist`, one entry and its chunks, with everything that they need of other packages.
//
// A bundle starts in 60 % of the CPU time of 570 modules, and takes 20 MB less. The other packages stay as the compiler
// made them. The files that are read at run time (`files.ts` of the command and of the gateway) and the licences lie
// around the bundle. Source maps name files and lines, for `node --enable-source-maps`.
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { build } from 'esbuild'

const ROOT = path.resolve(import.meta.dirname, '..')
const CLI = path.join(ROOT, 'packages/cli')
const GATEWAY = path.join(ROOT, 'packages/gateway')
const DIST = path.join(CLI, 'dist')
const NOTICES = 'THIRD-PARTY-NOTICES.md'
const LICENCE = /^(?:licen[cs]e|copying)\b/i
const NOT_ASCII = /[^\0-\x7F]/g

const { metafile, outputFiles } = await build({
  absWorkingDir: ROOT,
  // A thread of the gateway has an entry of its own, beside the command's.
  entryPoints: { main: 'packages/cli/src/main.ts', 'change-thread': 'packages/gateway/src/change-thread.ts' },
  outdir: DIST,
  bundle: true,
  // Each command, and each part of the gateway that is loaded later, has chunks of its own.
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node22.18',
  conditions: ['toolgate-source'],
  mainFields: ['module', 'main'],
  // Names stay, so that stack traces can be read.
  minifyWhitespace: true,
  minifySyntax: true,
  legalComments: 'none',
  sourcemap: 'linked',
  sourcesContent: false,
  metafile: true,
  write: false,
  banner: {
    js: "import { createRequire as requireFrom } from 'node:module';const require = requireFrom(import.meta.url);",
  },
  plugins: [
    { name: 'ascii', setup: (bundler) => bundler.onLoad({ filter: /\/node_modules\/.*\.js$/ }, loadAsAscii) },
    { name: 'without-http2', setup: leaveOutHttp2 },
  ],
})

for (const { path: file, text } of outputFiles) {
  const strange = file.endsWith('.js') && /.{0,40}[^\0-\x7F].{0,40}/.exec(text)
  if (strange)
    fail(`write this with an escape, as V8 keeps a file that is not ASCII in twice the memory: ${strange[0]}`)
}
rmSync(DIST, { recursive: true, force: true })
mkdirSync(DIST)
for (const { path: file, contents } of outputFiles) writeFileSync(file, contents)
for (const name of ['assets', 'console', 'openapi.json']) {
  rmSync(path.join(CLI, name), { recursive: true, force: true })
  cpSync(path.join(GATEWAY, name), path.join(CLI, name), { recursive: true })
}
const inside = [...packagesOfBundle(), ...packagesOfConsole()]
writeFileSync(path.join(CLI, NOTICES), renderNotices())
writeFileSync(path.join(CLI, 'sbom.cdx.json'), `${JSON.stringify(toSbom(inside), undefined, 2)}\n`)

/** undici requires HTTP/2 as it loads, and does without it where there is none. It takes 6 MB, and no server is asked to speak it. */
function leaveOutHttp2(bundler) {
  const ofUndici = ({ importer }) =>
    importer.includes('/node_modules/undici/') ? { path: 'none', namespace: 'http2' } : undefined
  bundler.onResolve({ filter: /^node:http2$/ }, ofUndici)
  bundler.onLoad({ filter: /^none$/, namespace: 'http2' }, () => ({ contents: 'module.exports = { constants: {} }' }))
}

function loadAsAscii({ path: file }) {
  const text = readFileSync(file, 'utf8')
  return { contents: text.replaceAll(NOT_ASCII, toEscapes), loader: 'js' }
}

function toEscapes(character) {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}

function packagesOfBundle() {
  const folders = new Set(
    Object.keys(metafile.inputs).flatMap((file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? []),
  )
  return [...folders].toSorted().map((folder) => {
    const at = path.join(ROOT, folder)
    return { at, ...JSON.parse(readFileSync(path.join(at, 'package.json'), 'utf8')) }
  })
}

/** The build of the console writes the licences of what is in the console, with a heading for each package. */
function packagesOfConsole() {
  const headings = readFileSync(path.join(GATEWAY, 'console', NOTICES), 'utf8').matchAll(
    /^## (\S+) - (\S+) \((.+)\)$/gm,
  )
  return [...headings].map(([, name, version, license]) => ({ name, version, license }))
}

/** Returns the packages in the command, as CycloneDX. The same sources have the same list. */
function toSbom(packages) {
  const { name, version, license } = JSON.parse(readFileSync(path.join(CLI, 'package.json'), 'utf8'))
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { component: { type: 'application', ...toComponent({ name, version, license }) } },
    components: packages.map((one) => ({ type: 'library', ...toComponent(one) })),
  }
}

function toComponent({ name, version, license }) {
  const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`
  return { 'bom-ref': purl, name, version, licenses: [{ license: { id: license } }], purl }
}

function renderNotices() {
  const packages = packagesOfBundle().map(renderPackage)
  const ofConsole = readFileSync(path.join(GATEWAY, 'console', NOTICES), 'utf8')
  return ['# Third-party notices', 'The command contains these packages.', ...packages, ofConsole].join('\n\n')
}

function renderPackage({ at: folder, name, version, license }) {
  const files = readdirSync(folder).filter((file) => LICENCE.test(file) || /^notice/i.test(file))
  const texts = files.toSorted().map((file) => readFileSync(path.join(folder, file), 'utf8'))
  if (!files.some((file) => LICENCE.test(file))) texts.unshift(licenceElsewhere(folder, name))
  return `## ${name} ${version} (${license})\n\n${texts.map((text) => text.trim()).join('\n\n')}`
}

/** Returns the licence in a package's README, or the one that only its repository has and `scripts/licences` keeps. */
function licenceElsewhere(folder, name) {
  const kept = path.join(ROOT, 'scripts/licences', `${name.replace('@', '').replace('/', '__')}.txt`)
  if (existsSync(kept)) return readFileSync(kept, 'utf8')
  const readme = path.join(folder, 'README.md')
  const [, text] = (existsSync(readme) && /^#+ licen[cs]e$(.+)/ims.exec(readFileSync(readme, 'utf8'))) || []
  return (
    text ?? fail(`${name} has no licence file, no licence in its README, and there is no ${path.relative(ROOT, kept)}`)
  )
}

function fail(message) {
  console.error(`scripts/bundle.js: ${message}`)
  process.exit(1)
}
