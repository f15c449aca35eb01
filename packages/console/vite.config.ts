import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

export default defineConfig({
  root: import.meta.dirname,
  plugins: [react()],
  build: {
    outDir: '../gateway/console',
    emptyOutDir: true,
    // Nothing inline: the gateway's Content-Security-Policy lets only files of its own through.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // The packages that have the console have the licences of what is in it.
    license: { fileName: 'THIRD-PARTY-NOTICES.md' },
  },
})
