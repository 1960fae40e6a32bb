# Compiles sixteen files of BoringSSL at once: most of the time goes into its headers. Read as a
# toolchain file, and again by BoringSSL's project, whose files that share names with others stay
# alone.
if(NOT DEFINED CMAKE_PROJECT_BoringSSL_INCLUDE)
  set(CMAKE_UNITY_BUILD ON)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 16)
  set(CMAKE_PROJECT_BoringSSL_INCLUDE ${CMAKE_CURRENT_LIST_FILE})
else()
  foreach(file crypto/trust_token/voprf crypto/md5/md5 crypto/pkcs8/pkcs8_x509 crypto/evp/p_mlkem
      crypto/hpke/hpke crypto/dsa/dsa crypto/dsa/dsa_asn1 crypto/ecdsa/ecdsa_asn1 crypto/err/err
      crypto/hrss/hrss crypto/cipher/e_rc2 crypto/x509/v3_pmaps ssl/handshake_server
      ssl/ssl_session ssl/tls13_server)
    set_source_files_properties(${file}.cc PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endforeach()
endif()
