import react from '@vitejs/plugin-react'
import { defineConfig, type Plugin } from 'vite'

/** The modules that send the requests of the first view: few, so that the requests go out before React is loaded. */
const FIRST =
  /console\/src\/(first|address|people|api|health|calls|callers-query|later|pages|store)\.ts$|vite\/preload-helper/
/** Charts: they are loaded when they are shown. */
const ALONE = /uplot|charts?[^/]*\.tsx?$/

/** Has the page fetch the parts of React at once, and not when the first script asks for them. */
const preloadStart: Plugin = {
  name: 'preload-start',
  transformIndexHtml: {
    order: 'post',
    handler: (_html, { bundle = {} }) =>
      Object.values(bundle)
        .filter((file) => file.type === 'chunk' && ['app', 'start'].includes(file.name))
        .map(({ fileName }) => ({
          tag: 'link',
          injectTo: 'head' as const,
          attrs: { rel: 'modulepreload', crossorigin: true, href: `/${fileName}` },
        })),
  },
}

export default defineConfig({
  root: import.meta.dirname,
  plugins: [react(), preloadStart],
  build: {
    outDir: '../gateway/console',
    emptyOutDir: true,
    // Nothing inline: the gateway's Content-Security-Policy lets only files of its own through.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // The packages that have the console have the licences of what is in it.
    // Few files: each costs a request and some milliseconds, a part that is not used nearly nothing.
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            { name: 'first', test: FIRST, priority: 2 },
            { name: 'app', test: (id) => !ALONE.test(id), minShareCount: 2, priority: 1 },
          ],
        },
      },
    },
    license: { fileName: 'THIRD-PARTY-NOTICES.md' },
  },
})
