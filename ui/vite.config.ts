import preact from '@preact/preset-vite'
import { defineConfig } from 'vite'

// One script and one style sheet with fixed names: the Go side embeds them, and writes them into
// reports. Neither source maps nor hashes: what is committed differs only where the code does.
export default defineConfig({
  base: './',
  plugins: [preact()],
  build: {
    outDir: 'dist',
    assetsDir: '.',
    emptyOutDir: true,
    sourcemap: false,
    modulePreload: false,
    license: { fileName: 'licenses.md' },
    cssCodeSplit: false,
    rollupOptions: {
      output: {
        entryFileNames: 'berth.js',
        chunkFileNames: 'berth-[name].js',
        assetFileNames: 'berth[extname]',
      },
    },
  },
  server: { proxy: { '/api': process.env.BERTH_UI ?? 'http://127.0.0.1:8080' } },
})
