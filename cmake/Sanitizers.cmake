# SPOKE_SANITIZE holds what -fsanitize= takes; the presets dev and tsan set it.
if(SPOKE_SANITIZE)
  add_compile_options(-fsanitize=${SPOKE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${SPOKE_SANITIZE})
endif()
